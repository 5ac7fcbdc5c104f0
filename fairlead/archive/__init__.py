"""The archive of samples: Parquet files, one folder per day and one file per sample.

`samples` writes and reads samples of groups; `files` lists, writes and removes the files;
`thinning` decides which old files are removed.
"""

from fairlead.archive.files import DAMAGED, FOLDER, Filters
from fairlead.archive.samples import SampleArchive, Taken, with_history

__all__ = ["DAMAGED", "FOLDER", "Filters", "SampleArchive", "Taken", "with_history"]
