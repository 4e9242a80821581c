package address

import (
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"lieudit/queries/address/addresstest"
	"lieudit/queries/address/search"
	"lieudit/queries/address/vintage"
	"lieudit/queries/worker/workertest"
	"lieudit/schemas/geo"
)

// misspell changes a letter.
func misspell(rng *rand.Rand, word string) string {
	i := rng.IntN(len(word))
	return word[:i] + string(rune('a'+rng.IntN(26))) + word[i+1:]
}

// hostile are questions that no one asks kindly.
func hostile() map[string]string {
	rng := rand.New(rand.NewPCG(3, 3))
	var misspelt, numbers, common, letters []string
	streets := []string{"general", "leclerc", "republique", "eglise", "fontaine", "chateau", "montagne", "lavandes", "moulins", "jaures"}
	for i := range 20 {
		misspelt = append(misspelt, misspell(rng, streets[i%len(streets)]))
		numbers = append(numbers, "1945")
		common = append(common, []string{"rue", "de", "la", "saint", "grand", "pont", "mairie", "jean"}[i%8])
		letters = append(letters, string(rune('a'+i)))
	}
	return map[string]string{
		"200 letters":        strings.Repeat("abcdefghij", 20),
		"one letter":         strings.Repeat("a", 200),
		"200 digits":         strings.Repeat("9", 200),
		"emoji":              strings.Repeat("🏠🇫🇷", 40) + " rue",
		"right to left":      strings.Repeat("شارع باريس ", 15),
		"SQL":                "'; DROP TABLE adresses; SELECT * FROM pg_sleep(10) WHERE ''='' -- rue de la paix",
		"invalid UTF-8":      strings.Repeat("\xff\xc3(\xa0\xa1 rue \xe2\x82", 12),
		"combining marks":    "e" + strings.Repeat("\u0301", 180) + "glise",
		"20 misspelt words":  strings.Join(misspelt, " "),
		"20 numbers":         strings.Join(numbers, " "),
		"20 common words":    strings.Join(common, " "),
		"20 letters":         strings.Join(letters, " "),
		"100 letters apart":  strings.Repeat("s ", 100),
		"postcodes":          strings.Repeat("75001 ", 33),
		"misspelt, placed":   "12 " + strings.Join(misspelt[:10], " ") + " 75013 paris",
		"cities":             strings.Repeat("paris lyon marseille saint denis ", 6),
		"zero bytes":         strings.Repeat("rue\x00", 50),
		"one word again":     strings.Repeat("saint ", 33),
		"begun words":        "rue c " + strings.Repeat("s", 1),
		"misspelt and begun": strings.Join(misspelt[:8], " ") + " rue de la c",
	}
}

// tooLong is what no question may take of a processor.
const tooLong = 50 * time.Millisecond

func TestHostileQuestionsAreAnsweredSoonAndTheSameWay(t *testing.T) {
	t.Parallel()
	slower := time.Duration(1)
	if raced() {
		slower = 10
	}
	for _, e := range []*Engine{lozere(t), onAsMany(lozere(t))} {
		answersSoonAndTheSameWay(t, e, slower*tooLong)
	}
}

func answersSoonAndTheSameWay(t *testing.T, e *Engine, most time.Duration) {
	t.Helper()
	e.Localities(LocalityQuery{Text: "mende", Limit: 1}) // makes a list first
	for name, line := range hostile() {
		checkSoon(t, e, name, line, most)
		a, errA := e.Verify(t.Context(), Query{Text: line, Limit: 20})
		b, errB := e.Verify(t.Context(), Query{Text: line, Limit: 20})
		if len(a) != len(b) || errA != errB || len(a) > 0 && a[0].ID != b[0].ID {
			t.Errorf("%s: %v (%v), then %v (%v)", name, a, errA, b, errB)
		}
		s, _ := e.Complete(t.Context(), Query{Text: line, Limit: 20})
		checkAnswers(t, line, a, s)
	}
}

// TestHostileQuestionsAtScale asks them of the vintages that LIEUDIT_TEST_VINTAGES lists.
func TestHostileQuestionsAtScale(t *testing.T) {
	for _, path := range filepath.SplitList(os.Getenv("LIEUDIT_TEST_VINTAGES")) {
		v, err := vintage.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		e := engineFor(t, v)
		e.Localities(LocalityQuery{Text: "mende", Limit: 1}) // makes a list first
		for range 2 {                                        // the first time reads the file
			worst, of := time.Duration(0), ""
			for name, line := range hostile() {
				if took := checkSoon(t, e, name, line, tooLong); took > worst {
					worst, of = took, name
				}
			}
			t.Logf("%s: at worst %v, for %s", path, worst, of)
		}
	}
}

// checkSoon asks one line in every way and gives back what the slowest took.
func checkSoon(t *testing.T, e *Engine, name, line string, most time.Duration) (worst time.Duration) {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for way, ask := range map[string]func(){
		"verify":   func() { e.Verify(t.Context(), Query{Text: line, Limit: 20}) },
		"complete": func() { e.Complete(t.Context(), Query{Text: line, Limit: 20}) },
		"bias":     func() { e.Complete(t.Context(), Query{Text: line, Limit: 20, Bias: &geo.Point{Lon: 2.35, Lat: 48.86}}) },
		"department": func() {
			e.Complete(t.Context(), Query{Text: line, Limit: 20, Filter: Filter{Departments: []string{"75", "59", "13"}}})
		},
		"localities": func() { e.Localities(LocalityQuery{Text: line, Limit: 20}) },
		"view":       func() { e.View(line) },
	} {
		start := addresstest.CPUTime(t)
		ask()
		took := addresstest.CPUTime(t) - start
		if worst = max(worst, took); took > most {
			t.Errorf("%s, %s: took %v", name, way, took)
		}
	}
	return worst
}

// raced reports whether the race detector slows everything down.
func raced() bool {
	info, _ := debug.ReadBuildInfo()
	return slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}

// checkAnswers wants answers that are in bounds.
func checkAnswers(t *testing.T, line string, matches []Match, suggestions []Suggestion) {
	t.Helper()
	for i := range matches {
		m := &matches[i]
		if m.Score < 0 || m.Score > 1 || m.ID == "" || m.Label == "" || i > 0 && m.Score > matches[i-1].Score {
			t.Errorf("%q: %+v", line, m)
		}
	}
	for _, s := range suggestions {
		for _, h := range s.Highlights {
			if h.Start < 0 || h.Length <= 0 || h.Start+h.Length > utf8.RuneCountInString(s.Label) {
				t.Errorf("%q: %+v of %q", line, h, s.Label)
			}
		}
	}
}

func TestTheWorkOnAQuestionIsBounded(t *testing.T) {
	t.Parallel()
	e := lozere(t)
	for name, line := range hostile() {
		query := Query{Text: line}
		found, err := e.index.Search(t.Context(), query.parse(true), search.Scope{})
		if err != nil || found.Steps() > search.MaxSteps*11/10 {
			t.Errorf("%s: %d steps, want at most %d (%v)", name, found.Steps(), search.MaxSteps, err)
		}
	}
}

// FuzzQuestion asks anything: the answers are in bounds, the same twice, and cost no more than their budget.
func FuzzQuestion(f *testing.F) {
	for _, line := range hostile() {
		f.Add(line)
	}
	for _, line := range []string{"12 bis rue des lilas 48000 mende", "8 rue du 8 mai 19", "10 rue jenner paris 13", "lieu-dit le chapitre", "5 rue des lilas 48"} {
		f.Add(line)
	}
	e := engineOf(f, hamlet())
	f.Fuzz(func(t *testing.T, line string) {
		if len(line) > 800 {
			return
		}
		a, errA := e.Verify(t.Context(), Query{Text: line, Limit: 20})
		b, errB := e.Verify(t.Context(), Query{Text: line, Limit: 20})
		if len(a) != len(b) || errA != errB {
			t.Fatalf("%q: %v, then %v", line, a, b)
		}
		s, _ := e.Complete(t.Context(), Query{Text: line, Limit: 20})
		checkAnswers(t, line, a, s)
	})
}

func TestAQuestionOfManyWordsNeedsAWorkerAndACommonOneDoesNot(t *testing.T) {
	t.Parallel()
	e := lozere(t)
	for line, want := range map[string]bool{
		"12 avenue foch 48000 mende":                            false,
		"mairie de florac":                                      false,
		hostile()["20 misspelt words"] + " 48 mende":            true,
		hostile()["misspelt and begun"] + " belle vue 48 mende": true,
	} {
		if got := workertest.NeedsWorker(t, func(ctx context.Context) error {
			_, err := e.Verify(ctx, Query{Text: line, Limit: 20})
			return err
		}); got != want {
			t.Errorf("%q needs a worker: %v, want %v", line, got, want)
		}
	}
}
