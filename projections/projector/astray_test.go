package projector_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lieudit/eventstore"
	"lieudit/projections/projector"
	"lieudit/projections/projector/projectortest"
	"lieudit/schemas/deadlinetest"
	"lieudit/schemas/table"
	"lieudit/schemas/table/tabletest"
)

// restoration is how an older copy of the log comes back.
type restoration struct {
	accounts int  // that are written on the copy, by another instance
	running  bool // under running instances
}

// restorations: the copy is shorter than what the rows hold, or has grown past it.
func restorations() map[string]restoration {
	all := map[string]restoration{}
	for length, accounts := range map[string]int{"shorter": 0, "longer": 150} {
		for _, running := range []bool{false, true} {
			all[fmt.Sprintf("%s, running %t", length, running)] = restoration{accounts, running}
		}
	}
	return all
}

func TestNothingIsAnsweredFromRowsThatAreNotOnTheLog(t *testing.T) {
	t.Parallel()
	for name, r := range restorations() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tabletest.Each(t, func(t *testing.T, address string) { restored(t, address, r) })
		})
	}
}

func restored(t *testing.T, address string, r restoration) {
	s := newScene(t, address)
	log := projectortest.NewRestorable(t)
	s.log = log
	projectortest.Fill(t, log, s.codec, 10)
	older := log.Copy(t)
	lost := projectortest.FillFrom(t, log, s.codec, 1000, 1050)
	one, two := s.start(t), s.start(t)
	one.passed(t, lost)
	two.passed(t, lost)
	if !r.running {
		one.stop()
		two.stop()
	}
	log.Restore(t, older, func() { projectortest.FillFrom(t, log, s.codec, 2000, 2000+r.accounts) })
	if !r.running {
		one, two = s.start(t), s.start(t)
	}
	for _, i := range []*instance{one, two} {
		for _, m := range []table.Model{table.Register, table.History} {
			until(t, m.Name+" is not asked", func() bool {
				return errors.Is(i.shelf.Read(t.Context(), m, func(*table.DB) error { return nil }), table.ErrAstray)
			})
		}
		until(t, "readiness says what to do", func() bool {
			err := i.Ready(t.Context())
			return err != nil && strings.Contains(err.Error(), "projections rebuild --all")
		})
	}
	at := projectortest.FillFrom(t, log, s.codec, 3000, 3001)
	if err := two.Wait(deadlinetest.Context(t, deadlinetest.Hang), at); !errors.Is(err, projector.ErrDown) {
		t.Errorf("a write waits: got %v, want %v", err, projector.ErrDown)
	}
	mended(t, s, at, one, two)
}

// mended rebuilds what is astray and compares it with what a new database comes to.
func mended(t *testing.T, s *scene, at eventstore.Position, one, two *instance) {
	t.Helper()
	for _, m := range []table.Model{table.Register, table.History} {
		if _, err := one.Rebuild(t.Context(), m.Name); err != nil {
			t.Fatal(err)
		}
	}
	one.passed(t, at)
	two.passed(t, at)
	anew := &scene{t.TempDir(), s.log, s.codec, s.vault}
	other := anew.start(t)
	other.passed(t, at)
	want := other.rows(t)
	for _, i := range []*instance{one, two} {
		if diff := cmp.Diff(want, i.rows(t)); diff != "" {
			t.Errorf("rebuilt (-from zero +got):\n%s", diff)
		}
		until(t, "ready", func() bool { return i.Ready(t.Context()) == nil })
	}
}

func TestRowsAreAnsweredFromAgainWhenTheirLogIsBack(t *testing.T) {
	t.Parallel()
	s := newScene(t, t.TempDir())
	log := projectortest.NewRestorable(t)
	s.log = log
	projectortest.Fill(t, log, s.codec, 10)
	older := log.Copy(t)
	at := projectortest.FillFrom(t, log, s.codec, 1000, 1050)
	right := log.Copy(t)
	one, two := s.start(t), s.start(t)
	one.passed(t, at)
	two.passed(t, at)
	log.Restore(t, older, func() {})
	read := func(i *instance) error {
		return i.shelf.Read(t.Context(), table.Register, func(*table.DB) error { return nil })
	}
	for _, i := range []*instance{one, two} {
		until(t, "it is not asked", func() bool { return errors.Is(read(i), table.ErrAstray) })
	}
	log.Restore(t, right, func() {})
	at = projectortest.FillFrom(t, log, s.codec, 3000, 3001)
	for _, i := range []*instance{one, two} {
		until(t, "it is asked again", func() bool { return read(i) == nil })
		i.passed(t, at)
	}
}
