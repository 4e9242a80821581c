package address

import (
	"context"
	"fmt"
	"time"

	"lieudit/cmd/bench/measure"
	"lieudit/queries/address"
	"lieudit/queries/address/ban"
	"lieudit/queries/address/perturb"
)

// The names of the extra numbers of the figure of one index and one kind of damaged question. All but the last two are counts. The figure's
// Value is the percentage of questions whose right address is the first result.
const (
	ScoreAsked            = "asked"
	ScoreFirst            = "first"               // result is the address
	ScoreTopFive          = "top 5"               // results have the address
	ScoreExact            = "exact"               // answers are rated exact, right or wrong
	ScoreFalseExact       = "false exact"         // answers are rated exact and wrong
	scoreSearches         = "searches a question" // of the index, if they are counted
	scoreMeanMilliseconds = "mean ms"
)

// scoreEngines runs the same damaged questions on every engine, one after another, and reports each engine's answers to each kind of damage.
// The damage is drawn with a constant seed. Without a sample, as with invented rows, it does nothing.
func (r *run) scoreEngines(ctx context.Context, engines []testedEngine, sample []ban.Row) error {
	if len(sample) == 0 {
		return nil
	}
	w := perturb.NewReference(sample)
	if len(sample) == maxSample {
		// The sample lacks rows, so a number missing from it may exist. Hardly any street has numbers from 9000 on.
		w.Unused = 9000
	}
	for seed, kind := range perturb.Kinds() {
		questions := kind.Sample(w, sample, uint64(seed), r.Questions)
		for _, e := range engines {
			r.Progress(e.name+": "+kind.Name, 0, 0)
			f, err := e.scoreQuestions(ctx, questions)
			if err != nil {
				return fmt.Errorf("%s: %s: %w", e.name, kind.Name, err)
			}
			if err := r.Report(f.With(measure.Label{Name: "damage", Value: kind.Name}, measure.Label{Name: "index", Value: e.name})); err != nil {
				return err
			}
		}
	}
	return nil
}

// scoreQuestions verifies each question and counts the right and wrong answers. Its latencies are those of verify.
func (e testedEngine) scoreQuestions(ctx context.Context, questions []perturb.Question) (measure.Figure, error) {
	var t perturb.Accuracy
	var total time.Duration
	latencies := measure.NewLatencies()
	_, searchesBefore := e.queryCounts()
	for _, q := range questions {
		query := address.Query{Text: q.Line(), Limit: 5}
		began := time.Now()
		found, err := e.Verify(ctx, query)
		took := time.Since(began)
		if err := unexpectedError(err); err != nil {
			return measure.Figure{}, err
		}
		latencies.Record(took)
		total += took
		t.Add(q, found)
	}
	_, searchesAfter := e.queryCounts()
	n := float64(max(len(questions), 1))
	f := latencies.Figure()
	f.Value, f.Unit = 100*float64(t.Top1)/n, "% first"
	f.Extra = map[string]float64{
		ScoreAsked: float64(t.Questions), ScoreFirst: float64(t.Top1), ScoreTopFive: float64(t.TopN), ScoreExact: float64(t.Exact), ScoreFalseExact: float64(t.FalseExact),
		scoreMeanMilliseconds: float64(total.Nanoseconds()) / 1e6 / n, scoreSearches: float64(searchesAfter-searchesBefore) / n,
	}
	return f, nil
}
