package locations_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"lieudit/eventstore/sqldb"
	"lieudit/eventstore/sqldb/sqldbtest"
	"lieudit/queries/locations"
	"lieudit/schemas/refusal"
	"lieudit/schemas/table"
)

// changedRow is an active site that changed last at a position.
func changedRow(account, code, id string, position int64) table.Site {
	r := row(account, code, id, true)
	r.Position, r.Modified = position, table.InstantOf(begin.Add(time.Duration(position)*time.Second))
	return r
}

// openChanges is openReader with a read model that is at a position of a log. setLog moves it to another.
func openChanges(t *testing.T, address string, referentials []table.Referential, rows []table.Site) (p *locations.Reader, write func(position int64, rows ...table.Site), setLog func(string)) {
	t.Helper()
	registry, db, promote := sqldbtest.NewGeneration(t, address, table.LocationsModel)
	inTx := func(f func(*sqldb.Tx) error) {
		t.Helper()
		if err := db.RunInTx(t.Context(), f); err != nil {
			t.Fatal(err)
		}
	}
	write = func(position int64, rows ...table.Site) {
		t.Helper()
		inTx(func(tx *sqldb.Tx) error {
			_, err := tx.Exec(t.Context(), "update {checkpoint} set position = ?", position)
			return errors.Join(err, sqldb.Upsert(t.Context(), tx, table.Sites, rows))
		})
	}
	setLog = func(id string) {
		t.Helper()
		inTx(func(tx *sqldb.Tx) error {
			_, err := tx.Exec(t.Context(), "update {checkpoint} set log = ?", id)
			return err
		})
	}
	inTx(func(tx *sqldb.Tx) error { return sqldb.Upsert(t.Context(), tx, table.Referentials, referentials) })
	write(10, rows...)
	setLog("one")
	promote()
	return locations.New(registry), write, setLog
}

// changesAfter reads all pages of changes of account a, and returns their objects and the last cursor.
func changesAfter(t *testing.T, p *locations.Reader, after locations.ChangesCursor, limit int) (changed []string, next locations.ChangesCursor) {
	t.Helper()
	return changesWithin(t, p, after, limit, 0)
}

// changesWithin is changesAfter with pages that end with the site that reaches maxBytes.
func changesWithin(t *testing.T, p *locations.Reader, after locations.ChangesCursor, limit, maxBytes int) (changed []string, next locations.ChangesCursor) {
	t.Helper()
	for {
		listed, err := p.ListChanges(t.Context(), "a", locations.ChangesPage{After: after, Limit: limit, MaxBytes: maxBytes})
		if err != nil || len(listed.Found) > limit || len(listed.Found) == 0 && listed.More {
			t.Fatalf("got %d of %d, %v", len(listed.Found), limit, err)
		}
		for _, c := range listed.Found {
			switch {
			case c.Site != nil:
				changed = append(changed, c.Site.Referential+"/"+c.Site.ExternalID)
			default:
				changed = append(changed, c.Referential.Code)
			}
			if c.At.IsZero() {
				t.Errorf("%s changed at no time", changed[len(changed)-1])
			}
		}
		if after = listed.Next; !listed.More {
			return changed, after
		}
	}
}

func TestChangesComeInTheOrderOfTheLogEachOnce(t *testing.T) {
	t.Parallel()
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		referential := func(account, code string, changed int64) table.Referential {
			return table.Referential{ID: table.ReferentialID(account, code), Account: account, Code: code, Created: table.InstantOf(begin), Position: 10, Changed: changed, Modified: table.InstantOf(begin)}
		}
		p, write, setLog := openChanges(t, address, []table.Referential{referential("a", "m", 1), referential("a", "n", 5), referential("a", "p", 8), referential("b", "m", 2)}, []table.Site{
			changedRow("a", "m", "z", 3), changedRow("a", "m", "b", 7), changedRow("a", "m", "~", 7), changedRow("a", "n", "c", 7), changedRow("a", "m", "A", 7), changedRow("b", "m", "x", 4),
		})
		want := []string{"m", "m/z", "n", "m/A", "m/b", "m/~", "n/c", "p"}
		for limit := 1; limit <= len(want)+1; limit++ {
			for _, maxBytes := range []int{0, 1, 4, 5, 100} { // a site has 2
				if got, _ := changesWithin(t, p, locations.ChangesCursor{}, limit, maxBytes); !cmp.Equal(got, want) {
					t.Errorf("by %d and %d bytes: got %q, want %q", limit, maxBytes, got, want)
				}
			}
		}
		_, end := changesAfter(t, p, locations.ChangesCursor{}, 3)
		if got, again := changesAfter(t, p, end, 3); len(got) > 0 || again != end {
			t.Errorf("got %q at the end, and a cursor %+v after %+v", got, again, end)
		}
		write(12, changedRow("a", "m", "b", 11), changedRow("a", "m", "new", 12), changedRow("b", "m", "x", 12))
		if got, _ := changesAfter(t, p, end, 1); !cmp.Equal(got, []string{"m/b", "m/new"}) {
			t.Errorf("got %q after the end", got)
		}
		write(12, changedRow("a", "m", "ahead", 13)) // of a transaction that has not moved the checkpoint yet
		if got, _ := changesAfter(t, p, end, 9); strings.Join(got, " ") != "m/b m/new" {
			t.Errorf("got %q", got)
		}
		ahead := locations.ChangesCursor{Log: "one", Position: 99, Row: "a/m/x"}
		if got, next := changesAfter(t, p, ahead, 9); len(got) > 0 || next != ahead {
			t.Errorf("a cursor ahead of the read model: got %q, %+v", got, next)
		}
		setLog("two")
		if _, err := p.ListChanges(t.Context(), "a", locations.ChangesPage{After: end, Limit: 9}); !errors.Is(err, refusal.CursorExpired) {
			t.Errorf("a cursor of another log: got %v", err)
		}
		if got, _ := changesAfter(t, p, locations.ChangesCursor{}, 9); len(got) != 9 {
			t.Errorf("got %q", got)
		}
	})
}

func TestWhatChangesWhileChangesAreReadIsNeitherLostNorOld(t *testing.T) {
	t.Parallel()
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		var rows []table.Site
		for i := range 6 {
			rows = append(rows, changedRow("a", "m", fmt.Sprint(i), 10))
		}
		p, write, _ := openChanges(t, address, nil, rows)
		first, err := p.ListChanges(t.Context(), "a", locations.ChangesPage{Limit: 3})
		if err != nil || len(first.Found) != 3 {
			t.Fatalf("got %d, %v", len(first.Found), err)
		}
		changed := changedRow("a", "m", "4", 11)
		changed.Version = 2
		write(12, changed, changedRow("a", "m", "0", 12))
		got, _ := changesAfter(t, p, first.Next, 3)
		if want := []string{"m/3", "m/5", "m/4", "m/0"}; !cmp.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		rest, err := p.ListChanges(t.Context(), "a", locations.ChangesPage{After: first.Next, Until: first.Until, Limit: 9})
		if err != nil || len(rest.Found) != 2 || rest.Next != first.Until {
			t.Errorf("a list that ended before: got %d, then %+v, %v", len(rest.Found), rest.Next, err)
		}
	})
}
