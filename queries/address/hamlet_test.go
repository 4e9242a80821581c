package address

import (
	"testing"

	"lieudit/queries/address/addresstest"
	"lieudit/queries/address/ban"
	"lieudit/queries/address/commune"
	"lieudit/queries/address/vintage"
)

func hamlet() []ban.Row { return addresstest.Hamlet() }

// lozere is an engine on official rows.
func lozere(t testing.TB) *Engine {
	t.Helper()
	return engineFor(t, addresstest.Lozere(t).Vintage)
}

func engineOf(t testing.TB, rows []ban.Row) *Engine {
	t.Helper()
	v, err := addresstest.BuildVintage(rows)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { v.Close() })
	return engineFor(t, v)
}

func engineFor(t testing.TB, v *vintage.Vintage) *Engine {
	t.Helper()
	table, err := commune.Load()
	if err != nil {
		t.Fatal(err)
	}
	return New(v, table)
}

// verified is the best match of a question.
func verified(t *testing.T, e *Engine, q Query) Match {
	t.Helper()
	q.Limit = 5
	found, err := e.Verify(t.Context(), q)
	if err != nil || len(found) == 0 {
		t.Fatalf("%+v: nothing (%v)", q, err)
	}
	return found[0]
}
