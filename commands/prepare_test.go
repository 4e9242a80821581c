package commands_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"lieudit/commands"
	"lieudit/eventstore"
	"lieudit/schemas/event"
)

// codesAggregate folds the codes of referentials in the order in which they were opened.
var codesAggregate = commands.Aggregate[[]string]{Category: "locations", Evolve: func(s *[]string, r commands.Record) {
	*s = append(*s, r.Event.(event.ReferentialOpened).Code)
}}

// openCode opens a referential without a decision.
func openCode(t *testing.T, log eventstore.Store, code string) {
	t.Helper()
	_, err := newCodes(log).Handle(t.Context(), "a", operator, func(*[]string) commands.Result {
		return commands.Append(event.ReferentialOpened{Code: code, Name: "N"})
	})
	if err != nil {
		t.Fatal(err)
	}
}

func newCodes(log eventstore.Store) *commands.Handler[[]string] {
	return commands.NewHandler(codesAggregate, log, eventstore.NewCodec(fakeVault{}))
}

func readCodes(t *testing.T, log eventstore.Store) (codes []string) {
	t.Helper()
	if err := newCodes(log).View(t.Context(), "a", func(s *[]string) { codes = slices.Clone(*s) }); err != nil {
		t.Fatal(err)
	}
	return codes
}

// If the log changes while a decision's work is done, the next decision sees the new state.
func TestADecisionIsMadeAgainOnTheStateAfterItsWork(t *testing.T) {
	t.Parallel()
	log := openLog(t, t.TempDir())
	var seen [][]string
	_, err := newCodes(log).Handle(t.Context(), "a", operator, func(s *[]string) commands.Result {
		seen = append(seen, slices.Clone(*s))
		if len(seen) == 1 {
			return commands.PrepareFirst(func(context.Context) error {
				openCode(t, log, "meanwhile")
				return nil
			})
		}
		return commands.Append(event.ReferentialOpened{Code: "after", Name: "N"})
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := [][]string{nil, {"meanwhile"}}; !slices.EqualFunc(seen, want, slices.Equal[[]string]) {
		t.Errorf("the decision saw %v, want %v", seen, want)
	}
	if got, want := readCodes(t, log), []string{"meanwhile", "after"}; !slices.Equal(got, want) {
		t.Errorf("the log has %v, want %v", got, want)
	}
}

func TestEventsThatAreBuiltAreBuiltForEachDecisionAndAppendedOnce(t *testing.T) {
	t.Parallel()
	log := openLog(t, t.TempDir())
	decided, built := 0, 0
	_, err := newCodes(log).Handle(t.Context(), "a", operator, func(s *[]string) commands.Result {
		decided++
		return commands.AppendBuilt(func(context.Context) ([]event.Event, error) {
			if built++; built == 1 {
				openCode(t, log, "meanwhile") // the append of this attempt meets a conflict
			}
			return []event.Event{event.ReferentialOpened{Code: "built", Name: "N"}}, nil
		})
	})
	if err != nil || decided != 2 || built != 2 {
		t.Errorf("%v after %d decisions and %d buildings, want two of both", err, decided, built)
	}
	if got, want := readCodes(t, log), []string{"meanwhile", "built"}; !slices.Equal(got, want) {
		t.Errorf("the log has %v, want %v", got, want)
	}
}

func TestWorkThatFailsAppendsNothing(t *testing.T) {
	t.Parallel()
	broken := errors.New("the vault is away")
	for name, result := range map[string]commands.Result{
		"prepare": commands.PrepareFirst(func(context.Context) error { return broken }),
		"build": commands.AppendBuilt(func(context.Context) ([]event.Event, error) {
			return []event.Event{event.ReferentialOpened{Code: "x"}}, broken
		}),
	} {
		log := openLog(t, t.TempDir())
		position, err := newCodes(log).Handle(t.Context(), "a", operator, func(*[]string) commands.Result { return result })
		if !errors.Is(err, broken) || position != 0 {
			t.Errorf("%s: got %d, %v, want %v", name, position, err, broken)
		}
		if got := readCodes(t, log); len(got) > 0 {
			t.Errorf("%s: the log has %v", name, got)
		}
	}
}
