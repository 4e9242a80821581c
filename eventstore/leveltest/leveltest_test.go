package leveltest_test

import (
	"errors"
	"runtime"
	"testing"

	"lieudit/eventstore/leveltest"
)

// recorder is a test that records how it ended. The methods that end a test end its goroutine.
type recorder struct {
	testing.TB
	ended string
}

func (r *recorder) Helper()               {}
func (r *recorder) Skip(...any)           { r.end("skipped") }
func (r *recorder) Skipf(string, ...any)  { r.end("skipped") }
func (r *recorder) Fatal(...any)          { r.end("failed") }
func (r *recorder) Fatalf(string, ...any) { r.end("failed") }

func (r *recorder) end(how string) {
	r.ended = how
	runtime.Goexit()
}

func TestALevelRunsWhatBelongsToItAndFailsWhatMissesSomething(t *testing.T) {
	for _, c := range []struct {
		running       string
		from          leveltest.Level
		present, gone string // the outcome of a test that has what it needs, and of one that does not
	}{
		{"", leveltest.Quick, "", "skipped"},
		{"", leveltest.Whole, "", "skipped"},
		{"quick", leveltest.Quick, "", "failed"},
		{"quick", leveltest.Usual, "skipped", "skipped"},
		{"quick", leveltest.Whole, "skipped", "skipped"},
		{"usual", leveltest.Quick, "", "failed"},
		{"usual", leveltest.Usual, "", "failed"},
		{"usual", leveltest.Whole, "skipped", "skipped"},
		{"whole", leveltest.Usual, "", "failed"},
		{"whole", leveltest.Whole, "", "failed"},
		{"1", leveltest.Usual, "failed", "failed"},
	} {
		t.Setenv(leveltest.Variable, c.running)
		for missing, want := range map[string]string{"": c.present, "no such program": c.gone} {
			r := &recorder{TB: t}
			done := make(chan struct{})
			go func() {
				defer close(done)
				leveltest.Need(r, c.from, missing)
			}()
			<-done
			if r.ended != want {
				t.Errorf("level %q, a test from %s on, missing %q: %q, want %q", c.running, c.from, missing, r.ended, want)
			}
		}
	}
}

func TestMissingNamesTheReason(t *testing.T) {
	if got := leveltest.Missing("no map", nil); got != "" {
		t.Errorf("got %q for what is there", got)
	}
	if got, want := leveltest.Missing("no map", errors.New("no such file")), "no map: no such file"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
