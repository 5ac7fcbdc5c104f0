"""Names, units and formats of figures."""

from fairlead.domain.figures import FIGURES, figure


def test_text_of_a_value_follows_its_unit() -> None:
    """Values are formatted by unit; each figure has its own text for a missing value."""
    assert figure("forecast_time_lag_s").text(7300.0) == "2 h"
    assert figure("adherence").text(0.9999) == "99.9 %"
    assert figure("lag_max_predicted").text(18_125) == "18,125"
    assert figure("rack_cost_per_day").text(1234.5) == "1,234.50"
    assert figure("rack_gb_per_day").text(None) == "unknown"
    assert [
        figure(name).text(None) for name in ("forecast_time_lag_s", "catch_up_s", "loss_s")
    ] == [*("unknown", "never", "none")]


def test_every_figure_has_a_text_and_a_unique_label() -> None:
    assert all(each.text(1.0) and each.meaning.endswith(".") for each in FIGURES.values())
    assert len({each.label for each in FIGURES.values()}) == len(FIGURES)
