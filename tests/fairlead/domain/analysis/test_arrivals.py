"""Arrival rates are averages while traffic is steady, and follow changes quickly."""

import numpy as np
import pytest

from fairlead.domain.analysis.arrivals import Rates, arrival_rates, with_common_change
from fairlead.domain.analysis.sample_series import Float64
from tests.fairlead.domain.analysis.questions import series_at


def rates_of(per_step: Float64, step_s: float = 60.0) -> Rates:
    """Return the arrival rates. `per_step` has the number of records in each step, shape (S, P)."""
    end = np.concatenate((np.zeros((1, per_step.shape[1])), per_step.cumsum(axis=0))) + 500
    whole = end.astype(int).tolist()
    return arrival_rates(series_at(whole, whole, [0] * per_step.shape[1], step_s=step_s))


def test_steady_traffic_is_averaged_over_the_hour() -> None:
    """Steady traffic is averaged over all sixty steps; errors are below five deviations."""
    rates = rates_of(np.random.default_rng(1).poisson(300.0, (60, 200)).astype(float))
    assert np.median(rates.seconds) == 3600
    assert np.abs(rates.per_s - 5.0).max() < 5 * rates.deviation.max()
    assert rates.deviation.max() < 0.06


def test_slow_growth_of_a_topic_counts_if_single_partitions_are_noisy() -> None:
    """If a topic grows slowly, its partitions' rates are raised, except that of an outlier.

    The first of two topics grows by a fifth in an hour. In the last five minutes, one of its
    partitions gets ten times as many records.
    """
    per_step = np.full((60, 200), 60.0) * np.linspace(1.0, 1.2, 60)[:, None]
    per_step[:, 100:] = 60.0
    per_step[-5:, 0] *= 10
    counts = np.random.default_rng(1).poisson(per_step).astype(float)
    end = np.concatenate((np.zeros((1, 200)), counts.cumsum(axis=0))).astype(int).tolist()
    series = series_at(end, end, [0] * 200, step_s=60.0)
    kind = np.repeat([0, 1], 100)
    alone = arrival_rates(series)
    together = with_common_change(alone, series, kind)
    assert alone.per_s[1:100].mean() == pytest.approx(1.1, rel=0.03)
    assert together.per_s[1:100].mean() == pytest.approx(1.19, rel=0.02)
    assert together.per_s[0] == alone.per_s[0]
    assert together.per_s[100:] == pytest.approx(alone.per_s[100:])


def test_a_change_is_followed_within_a_sample() -> None:
    per_step = np.full((60, 1), 300.0)
    per_step[-1] = 1500.0
    assert rates_of(per_step).per_s[0] == pytest.approx(25.0)


@pytest.mark.parametrize("every", [3, 5, 10])
def test_batches_are_no_changes(every: int) -> None:
    per_step = np.zeros((60, every))
    for phase in range(every):
        per_step[phase::every, phase] = 60.0 * every
    rates = rates_of(per_step)
    assert rates.per_s == pytest.approx(np.ones(every), rel=0.1)


def test_new_traffic_has_a_rate_within_three_samples() -> None:
    per_step = np.zeros((60, 50))
    per_step[-3:] = np.random.default_rng(2).poisson(300.0, (3, 50))
    assert np.median(rates_of(per_step).per_s) == pytest.approx(5.0, rel=0.1)


def test_rare_records_have_a_rate_and_much_uncertainty() -> None:
    """At about twelve records an hour, the deviation is over a fifth of the rate."""
    rates = rates_of(np.random.default_rng(3).poisson(0.2, (60, 400)).astype(float))
    assert rates.per_s.mean() == pytest.approx(0.2 / 60, rel=0.1)
    assert (rates.deviation[rates.per_s > 0] > 0.2 * rates.per_s[rates.per_s > 0]).all()


def test_the_rate_of_a_log_created_again_starts_there() -> None:
    """If the end offset has decreased, the rate is computed only from records of the new log."""
    end = [[10_000 + 600 * step] for step in range(10)] + [[60 * step] for step in range(10)]
    rates = arrival_rates(series_at(end, end, [0]))
    assert rates.per_s[0] == pytest.approx(1.0)
    assert 300 < rates.seconds[0] <= 540


def test_one_sample_gives_no_rate() -> None:
    rates = arrival_rates(series_at([[5, 7]], [[5, 7]], [0, 1]))
    assert not rates.known.any()
