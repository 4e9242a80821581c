// Package accuracy asks the address engine questions whose answers are known, and counts how often it is right, how fast it answers, and which
// wrong answers a client would act upon. It calls only what the API calls, Engine.Verify and Engine.Complete, so it can judge any engine behind
// them.
//
//	Run ──> OpenVintage           files of the base and invented rows, built once and kept
//	    ──> meiliindex.Fill       where a Meilisearch is named
//	    ──> addok.New             where another geocoder is named
//	    ──> readQuestionFiles ─┐
//	        drawAbsent         ├──> groups of questions, each with its judge
//	        drawExact ─────────┘
//	    ──> askGroup ──> judgement of each question ──> measure.Figure, one a group
//	    (each index)                                ──> resultWriter, one line a question
//
// Of the last two, drawAbsent makes addresses that the vintage does not have, and drawExact writes existing ones in other ways and damages
// them. This command runs it on the test data set, with a vintage that the next run uses again:
//
//	D=../shared/data; go run ./cmd/bench address --vintage /var/tmp/bench.vintage \
//	    --file $D/questions/real-rows.csv.gz --file $D/ban/adresses-48.csv.gz --file $D/ban/adresses-93010-bondy.csv.gz \
//	    --questions $D/questions/questions.csv --absent 4000 --exact 400 --out results.csv
package accuracy

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"lieudit/cmd/bench/address/addok"
	"lieudit/cmd/bench/address/meiliindex"
	"lieudit/cmd/bench/measure"
	"lieudit/queries/address"
	"lieudit/queries/address/commune"
	"lieudit/schemas/geo"
)

// Options select the questions and the vintage. If Vintage exists, neither files nor invented rows are read.
type Options struct {
	Files       []string // of the address base
	Invented    int      // additional rows
	Seed        uint64   // of the invented rows
	Vintage     string   // used, or built and kept; empty: one is built in the folder of the run
	Meilisearch string   // http://KEY@HOST:PORT; empty: only the vintage's own index is asked
	Questions   []string // files of questions
	Absent      int      // questions about addresses that the vintage does not have
	Exact       int      // addresses of the vintage for each kind of writing and damage
	Out         string   // file of results; empty: none
	Peer        string   // file of another geocoder's results; empty: none
	PeerURL     string   // another geocoder that gets the same questions (package addok); empty: none
}

// Run asks all questions, one after another, and reports a figure for each kind of each set. Its value is the percentage of questions whose
// first answer is right on the vintage's own index. The numbers of Meilisearch are extra numbers of the figure.
func Run(ctx context.Context, dir string, o Options, out measure.Output) (err error) {
	questions, err := readQuestionFiles(o.Questions)
	if err != nil {
		return err
	}
	p, err := readPeerFile(o.Peer)
	if err != nil {
		return err
	}
	communes, err := commune.Load()
	if err != nil {
		return err
	}
	v, err := OpenVintage(ctx, dir, communes, o, out)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	r := run{Output: out, peer: p}
	defer func() { err = errors.Join(err, r.closeResults()) }()
	own := address.New(v, communes)
	if err := r.addIndex("", engineAnswers(own), nil, o.Out); err != nil {
		return err
	}
	if o.Meilisearch != "" {
		x, fillErr := meiliindex.Fill(ctx, o.Meilisearch, v, communes, func(done, total int) { out.Progress("meilisearch: list", done, total) })
		if fillErr != nil {
			return fillErr
		}
		defer func() { err = errors.Join(err, x.Remove(ctx)) }()
		if err := r.addIndex("meilisearch ", engineAnswers(x.Engine), x.Asked, o.Out); err != nil {
			return err
		}
	}
	if o.PeerURL != "" {
		if err := r.addIndex("addok ", peerAnswers(o.PeerURL), nil, o.Out); err != nil {
			return err
		}
	}
	return r.askGroups(ctx, slices.Concat(storedGroups(own, questions), drawAbsent(v, o.Seed, o.Absent), drawExact(v, own, o.Seed, o.Exact)))
}

// question is a text and the expected answer.
type question struct {
	set, kind string
	text      string
	bias      *geo.Point
	completes bool   // the text is the beginning of an address, for Complete
	id        string // of the expected record; empty: no answer is right
	label     string // of that record
	judge     func([]address.Match) judgement
}

// group is the questions of one kind.
type group struct {
	set, kind string
	counters  []string // names of the counters of its judges
	questions []question
}

// storedGroups groups stored questions and gives each its judge.
func storedGroups(engine *address.Engine, questions []question) []group {
	j := storedJudge{exists: func(id string) bool { _, ok := engine.View(id); return ok }}
	groups := groupQuestions(questions)
	for _, g := range groups {
		for i := range g.questions {
			q := &g.questions[i]
			q.judge = func(answers []address.Match) judgement { return j.judge(*q, answers) }
		}
	}
	for i := range groups {
		groups[i].counters = []string{countFalseExact, countFalseResolved, countOtherNumber}
		if groups[i].set == completionSet { // suggestions have no verdict
			groups[i].counters = []string{countOtherNumber}
		}
	}
	return groups
}

// run is one run of the benchmark.
type run struct {
	measure.Output
	indexes []testedIndex
	peer    peer
}

// testedIndex is the engine on one index, or another geocoder. The first one is the vintage's own.
type testedIndex struct {
	prefix      string // of its numbers in a figure; empty for the vintage's own
	answer      answerer
	queryCounts func() (requests, searches int64) // so far; nil if they are not counted
	results     *resultWriter
}

// addIndex adds an index. Its results go to a file whose name begins with the prefix.
func (r *run) addIndex(prefix string, answer answerer, queryCounts func() (requests, searches int64), out string) error {
	if out != "" {
		folder, name := filepath.Split(out)
		out = folder + strings.ReplaceAll(prefix, " ", "-") + name
	}
	results, err := newResultWriter(out)
	if err == nil {
		r.indexes = append(r.indexes, testedIndex{prefix, answer, queryCounts, results})
	}
	return err
}

// closeResults closes the files of results.
func (r *run) closeResults() (err error) {
	for _, x := range r.indexes {
		err = errors.Join(err, x.results.close())
	}
	return err
}

// askGroups asks all groups of questions.
func (r *run) askGroups(ctx context.Context, groups []group) error {
	if err := r.warmUp(ctx, groups); err != nil {
		return err
	}
	for _, g := range groups {
		if err := r.askGroup(ctx, g); err != nil {
			return fmt.Errorf("%s: %s: %w", g.set, g.kind, err)
		}
	}
	return nil
}

// answerLimit is the number of answers requested.
const answerLimit = 5

// answerer asks one question. Suggestions are returned as matches without a verdict. A text without an address has no answers.
type answerer func(ctx context.Context, q question) ([]address.Match, error)

// engineAnswers asks the engine.
func engineAnswers(engine *address.Engine) answerer {
	return func(ctx context.Context, q question) (answers []address.Match, err error) {
		query := address.Query{Text: q.text, Limit: answerLimit, Bias: q.bias}
		if q.completes {
			var suggestions []address.Suggestion
			suggestions, err = engine.Complete(ctx, query)
			for _, s := range suggestions {
				answers = append(answers, address.Match{Record: s.Record, Score: s.Score})
			}
		} else {
			answers, err = engine.Verify(ctx, query)
		}
		if errors.Is(err, address.ErrShort) || errors.Is(err, address.ErrUnparsable) {
			return nil, nil
		}
		return answers, err
	}
}

// peerAnswers asks another geocoder over HTTP. Its answers have no verdict, and their records only the fields that judges read.
func peerAnswers(base string) answerer {
	peer := addok.New(base)
	return func(ctx context.Context, q question) (answers []address.Match, err error) {
		found, err := peer.Search(ctx, addok.Query{Text: q.text, Limit: answerLimit, IsCompleted: q.completes, Bias: q.bias})
		for _, a := range found {
			r := address.Record{ID: a.ID, Label: a.Label, Type: address.Type(a.Type)}
			n := numberOfID(a.ID)
			r.Number, r.Rep = n.number, n.rep
			answers = append(answers, address.Match{Record: r, Score: a.Score})
		}
		return answers, err
	}
}

// warmUpQuestions is how many questions of each group are answered before the measurement. They load the needed parts of the vintage into
// memory.
const warmUpQuestions = 20

// warmUp answers some questions of each group on each index.
func (r *run) warmUp(ctx context.Context, groups []group) error {
	for _, g := range groups {
		for _, q := range g.questions[:min(warmUpQuestions, len(g.questions))] {
			for _, x := range r.indexes {
				if _, err := x.answer(ctx, q); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// askGroup asks the questions of a group on each index and reports their figure.
func (r *run) askGroup(ctx context.Context, g group) error {
	var figure measure.Figure
	for n, x := range r.indexes {
		t, err := x.askGroup(ctx, g, func(done int) { r.Progress(x.prefix+g.set+": "+g.kind, done, len(g.questions)) })
		if err != nil {
			return err
		}
		if n == 0 {
			figure = t.figure(g)
		} else {
			t.addTo(figure, x.prefix, g)
		}
	}
	r.peer.addTo(figure, g)
	return r.Report(figure)
}

// askGroup asks the questions of a group on one index.
func (x testedIndex) askGroup(ctx context.Context, g group, progress func(done int)) (*tally, error) {
	t := &tally{counts: map[string]int{}, latencies: measure.NewLatencies()}
	searchesBefore := x.searches()
	for i, q := range g.questions {
		progress(i)
		processorBefore, began := measure.ProcessorTime(), time.Now()
		answers, err := x.answer(ctx, q)
		took := time.Since(began)
		t.processor += measure.ProcessorTime() - processorBefore
		if err != nil {
			return nil, fmt.Errorf("%q: %w", q.text, err)
		}
		t.latencies.Record(took)
		judged := q.judge(answers)
		t.add(judged)
		if err := x.results.write(q, answers, judged.first, took); err != nil {
			return nil, err
		}
	}
	t.searches = x.searches() - searchesBefore
	return t, nil
}

// searches returns how many searches the index has answered, 0 if they are not counted.
func (x testedIndex) searches() (n int64) {
	if x.queryCounts != nil {
		_, n = x.queryCounts()
	}
	return n
}

// tally adds up the judgements of a group.
type tally struct {
	first, topFive int
	counts         map[string]int // by counter
	latencies      *measure.Latencies
	processor      time.Duration
	searches       int64 // made on the index
}

// add adds one judgement.
func (t *tally) add(j judgement) {
	t.first += count(j.first)
	t.topFive += count(j.topFive)
	for _, name := range j.counted {
		t.counts[name]++
	}
}

// figure returns the figure of a group on the vintage's own index.
func (t *tally) figure(g group) measure.Figure {
	n := len(g.questions)
	f := measure.Figure{
		Labels: []measure.Label{{Name: "set", Value: g.set}, {Name: "kind", Value: g.kind}},
		Value:  percent(t.first, n), Unit: "% first", Samples: n,
		Extra: map[string]float64{},
	}
	t.addTo(f, "", g)
	return f
}

// addTo adds the numbers of an index to the figure of a group, with each of its counters, even if it is 0. Names begin with a prefix. Without
// one, it omits the share of right answers, which is the figure's value, and the number of searches.
func (t *tally) addTo(f measure.Figure, prefix string, g group) {
	n := len(g.questions)
	if prefix != "" {
		f.Extra[prefix+"first %"] = percent(t.first, n)
		f.Extra[prefix+"searches a question"] = math.Round(10*float64(t.searches)/float64(max(n, 1))) / 10
	}
	f.Extra[prefix+"top 5 %"] = percent(t.topFive, n)
	f.Extra[prefix+"p50 us"], f.Extra[prefix+"p99 us"] = microseconds(t.latencies, 0.5), microseconds(t.latencies, 0.99)
	f.Extra[prefix+"processor us"] = float64(t.processor.Microseconds() / int64(max(n, 1)))
	for _, name := range g.counters {
		f.Extra[prefix+name] = float64(t.counts[name])
	}
}

// count returns 1 for true.
func count(b bool) int {
	if b {
		return 1
	}
	return 0
}

// percent returns a share in percent with one decimal.
func percent(part, whole int) float64 {
	return math.Round(1000*float64(part)/float64(max(whole, 1))) / 10
}

// microseconds returns a quantile in whole microseconds.
func microseconds(l *measure.Latencies, share float64) float64 {
	return math.Round(1000 * l.Quantile(share))
}
