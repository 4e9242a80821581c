package address

import (
	"context"
	"slices"
	"time"

	"lieudit/queries/address"
	"lieudit/queries/address/noise"
)

// Score is how one index did with one kind of damaged question.
type Score struct {
	Kind       string  `json:"bruit"`
	Target     string  `json:"index"`
	Questions  int     `json:"questions"`
	Top1       int     `json:"premier"`
	Top5       int     `json:"parmi_5"`
	Exact      int     `json:"exact"`
	FalseExact int     `json:"faux_exact"`
	Mean       float64 `json:"moyenne_us"`
	P50        float64 `json:"p50_us"`
	P99        float64 `json:"p99_us"`
	Searches   float64 `json:"recherches"` // of the index for a question, where they are counted
}

// scoreEngines asks every rival the same damaged questions, one after the other.
func (o Options) scoreEngines(ctx context.Context, all []testedEngine, f *questionSet, report func(Score) error) error {
	if len(f.sample) == 0 {
		return nil
	}
	w := noise.WorldOf(f.sample)
	if len(f.sample) == maxSample {
		w.Unused = 9000
	}
	for seed, kind := range noise.Kinds() {
		questions := kind.Draw(w, f.sample, uint64(seed), o.Questions)
		for _, r := range all {
			o.Progress(r.name+": "+kind.Name, 0, 0)
			s, err := r.scoreQuestions(ctx, questions)
			if err != nil {
				return err
			}
			s.Kind, s.Target = kind.Name, r.name
			if err := report(s); err != nil {
				return err
			}
		}
	}
	return nil
}

// scoreQuestions asks questions and counts what became of them.
func (r testedEngine) scoreQuestions(ctx context.Context, questions []noise.Question) (Score, error) {
	var t noise.Tally
	took := make([]time.Duration, len(questions))
	_, before := r.queryCounts()
	for i, q := range questions {
		ask := address.Query{Text: q.Line(), Limit: 5}
		began := time.Now()
		found, err := r.Verify(ctx, ask)
		took[i] = time.Since(began)
		if err := unexpectedError(err); err != nil {
			return Score{}, err
		}
		t.Count(q, found)
	}
	_, after := r.queryCounts()
	s := Score{Questions: t.Asked, Top1: t.First, Top5: t.Among, Exact: t.Exact, FalseExact: t.FalseExact}
	if len(took) == 0 {
		return s, nil
	}
	var sum time.Duration
	for _, d := range took {
		sum += d
	}
	slices.Sort(took)
	micro := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }
	s.Mean, s.P50, s.P99 = micro(sum)/float64(len(took)), micro(took[len(took)/2]), micro(took[len(took)*99/100])
	s.Searches = float64(after-before) / float64(len(took))
	return s, nil
}
