package audit_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"lieudit/eventstore/sqldb"
	"lieudit/eventstore/sqldb/sqldbtest"
	"lieudit/queries/audit"
	"lieudit/schemas/table"
)

var begin = time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)

// openReader is a history of eight entries of account a, an hour apart, with those of another account in between, and of others.
func openReader(t *testing.T, address string, rows ...table.AuditEntry) *audit.Reader {
	t.Helper()
	registry, err := sqldb.OpenRegistry(address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { registry.Close() })
	c, err := registry.BuildGeneration(t.Context(), table.AuditModel, false)
	if err != nil {
		t.Fatal(err)
	}
	db, release, err := registry.OpenGeneration(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	for i := range int64(8) {
		kind := []string{table.AuditKindAccount, table.AuditKindKeys}[i%2]
		at := table.InstantOf(begin.Add(time.Duration(i) * time.Hour))
		rows = append(rows,
			table.AuditEntry{Position: 100 * (i + 1), Account: "a", Recorded: at, Kind: kind, Type: "t", Subject: "s", Actor: "token:1", OnBehalfOf: "g", Sentence: "did", Data: `{"key":"k"}`},
			table.AuditEntry{Position: 100*(i+1) + 50, Account: "b", Recorded: at, Kind: kind, Data: "{}"})
	}
	texts := []table.AuditText{{Position: 100, Owner: "a", Account: "a", Reason: "r", Data: `{"key":"k","label":"l"}`}, {Position: 150, Owner: "b", Account: "b", Reason: "not of a"}}
	err = db.RunInTx(t.Context(), func(tx *sqldb.Tx) error {
		return errors.Join(sqldb.Upsert(t.Context(), tx, table.AuditEntries, rows), sqldb.Upsert(t.Context(), tx, table.AuditTexts, texts))
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := registry.PromoteGeneration(t.Context(), table.AuditModel, c); err != nil {
		t.Fatal(err)
	}
	return audit.New(registry)
}

func TestEntriesAreFilteredByEveryPartOfTheQuery(t *testing.T) {
	t.Parallel()
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		tr := openReader(t, address)
		for rule, c := range map[string]struct {
			question audit.Query
			want     []uint64
			more     bool
		}{
			"all":             {audit.Query{Limit: 8}, []uint64{100, 200, 300, 400, 500, 600, 700, 800}, false},
			"first page":      {audit.Query{Limit: 3}, []uint64{100, 200, 300}, true},
			"next page":       {audit.Query{Limit: 3, After: audit.EntryKey{Position: 300}}, []uint64{400, 500, 600}, true},
			"last page":       {audit.Query{Limit: 3, After: audit.EntryKey{Position: 600}}, []uint64{700, 800}, false},
			"behind the end":  {audit.Query{Limit: 3, After: audit.EntryKey{Position: 800}}, []uint64{}, false},
			"one kind":        {audit.Query{Limit: 8, Kind: table.AuditKindKeys}, []uint64{200, 400, 600, 800}, false},
			"kind, next page": {audit.Query{Limit: 2, Kind: table.AuditKindKeys, After: audit.EntryKey{Position: 200}}, []uint64{400, 600}, true},
			"from":            {audit.Query{Limit: 8, From: begin.Add(5 * time.Hour)}, []uint64{600, 700, 800}, false},
			"to":              {audit.Query{Limit: 8, To: begin.Add(2 * time.Hour)}, []uint64{100, 200}, false},
			"newest":          {audit.Query{Limit: 3, Newest: true}, []uint64{800, 700, 600}, true},
			"newest, further": {audit.Query{Limit: 3, Newest: true, After: audit.EntryKey{Position: 600}}, []uint64{500, 400, 300}, true},
			"newest, last":    {audit.Query{Limit: 3, Newest: true, After: audit.EntryKey{Position: 300}}, []uint64{200, 100}, false},
			"newest, behind":  {audit.Query{Limit: 3, Newest: true, After: audit.EntryKey{Position: 100}}, []uint64{}, false},
			"newest of kind":  {audit.Query{Limit: 8, Newest: true, Kind: table.AuditKindKeys, To: begin.Add(5 * time.Hour)}, []uint64{400, 200}, false},
			"between":         {audit.Query{Limit: 1, From: begin.Add(time.Hour), To: begin.Add(3 * time.Hour)}, []uint64{200}, true},
		} {
			c.question.Account = "a"
			found, more, err := tr.ListEntries(t.Context(), c.question)
			got := make([]uint64, len(found))
			for i, e := range found {
				got[i] = e.Position
			}
			if diff := cmp.Diff(c.want, got); diff != "" || more != c.more || err != nil {
				t.Errorf("%s: more %v, %v, %s", rule, more, err, diff)
			}
		}
	})
}

func TestAnEntryHasAllColumnsOfItsRowAndWhatPeopleTyped(t *testing.T) {
	t.Parallel()
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		got, _, err := openReader(t, address).ListEntries(t.Context(), audit.Query{Account: "a", Limit: 1})
		want := []audit.Entry{{EntryKey: audit.EntryKey{Position: 100}, Account: "a", Time: begin, Type: "t", Kind: table.AuditKindAccount, Subject: "s",
			Actor: "token:1", OnBehalfOf: "g", Reason: "r", Sentence: "did", Data: []byte(`{"key":"k","label":"l"}`)}}
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Error(diff, err)
		}
	})
}

// The texts that people typed belong to their entries in either order.
func TestTheNewestEntriesHaveTheirTexts(t *testing.T) {
	t.Parallel()
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		got, _, err := openReader(t, address).ListEntries(t.Context(), audit.Query{Account: "a", Limit: 8, Newest: true})
		if err != nil || len(got) != 8 || got[7].Reason != "r" || got[6].Reason != "" {
			t.Errorf("got %+v, %v", got, err)
		}
	})
}

func TestEntriesHaveAFrenchSentence(t *testing.T) {
	t.Parallel()
	for want, e := range map[string]audit.Entry{
		"a créé la clé secrète k (h)": {Kind: table.AuditKindKeys, Subject: "k", Type: "account.secret-key-issued.v2", Data: []byte(`{"key":"k","hint":"h"}`)},
		"a modifié le site p/1 de m (version 12)": {
			Kind: table.AuditKindSites, Subject: "m/p/1", Type: "locations.sites-changed.v1", Data: []byte(`{"externalId":"p/1","op":"updated","version":12}`),
		},
		"a écrit des sites de m (synchronisation)\u00a0: 1\u202f200 créés, 0 modifiés, 3 réactivés, 2 désactivés": {
			Kind: table.AuditKindSites, Subject: "m", Type: "locations.sync-committed.v1", Data: []byte(`{"referential":"m","action":"sync","created":1200,"updated":0,"reactivated":3,"deactivated":2}`),
		},
	} {
		if got := e.FrenchSentence(); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

func TestPartsOfAnEventArePagedLikeEvents(t *testing.T) {
	t.Parallel()
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		tr := openReader(t, address, table.AuditEntry{Position: 800, Part: 1, Account: "a", Kind: table.AuditKindSites, Subject: "m/p", Data: "{}"},
			table.AuditEntry{Position: 800, Part: 2, Account: "a", Kind: table.AuditKindSites, Subject: "m/q", Data: "{}"},
			table.AuditEntry{Position: 900, Account: "a", Kind: table.AuditKindSites, Subject: "m/p", Data: "{}"})
		for rule, c := range map[string]struct {
			question audit.Query
			want     []audit.EntryKey
		}{
			"in their order":     {audit.Query{After: audit.EntryKey{Position: 700}}, []audit.EntryKey{{800, 0}, {800, 1}, {800, 2}, {900, 0}}},
			"after one of them":  {audit.Query{After: audit.EntryKey{Position: 800, Part: 1}}, []audit.EntryKey{{800, 2}, {900, 0}}},
			"of a kind":          {audit.Query{Kind: table.AuditKindSites}, []audit.EntryKey{{800, 1}, {800, 2}, {900, 0}}},
			"about one":          {audit.Query{Subject: "m/p"}, []audit.EntryKey{{800, 1}, {900, 0}}},
			"about one, further": {audit.Query{Subject: "m/p", After: audit.EntryKey{Position: 800, Part: 1}}, []audit.EntryKey{{900, 0}}},
			"newest first":       {audit.Query{Newest: true, After: audit.EntryKey{Position: 900}}, []audit.EntryKey{{800, 2}, {800, 1}, {800, 0}, {700, 0}, {600, 0}, {500, 0}, {400, 0}, {300, 0}, {200, 0}, {100, 0}}},
			"newest, within":     {audit.Query{Newest: true, Subject: "m/q", After: audit.EntryKey{Position: 900}}, []audit.EntryKey{{800, 2}}},
			"about none":         {audit.Query{Subject: "m"}, nil},
			"without the sites":  {audit.Query{Summary: true, Kind: table.AuditKindSites, After: audit.EntryKey{Position: 700}}, []audit.EntryKey{{900, 0}}},
		} {
			c.question.Account, c.question.Limit = "a", 20
			found, _, err := tr.ListEntries(t.Context(), c.question)
			var got []audit.EntryKey
			for _, e := range found {
				got = append(got, e.EntryKey)
			}
			if diff := cmp.Diff(c.want, got); diff != "" || err != nil {
				t.Errorf("%s: %v, %s", rule, err, diff)
			}
		}
	})
}

func TestACursorParsesToTheKeyItWasMadeOf(t *testing.T) {
	t.Parallel()
	for _, want := range []audit.EntryKey{{}, {Position: 17}, {Position: 1 << 62, Part: 3<<16 | 1}} {
		if got, err := audit.ParseCursor(want.Cursor()); got != want || err != nil {
			t.Errorf("got %v, %v, want %v", got, err, want)
		}
	}
	for _, cursor := range []string{"", "x", "1", "1.", ".1", "1.x", "-1.0", "1.2.3", "9223372036854775808.0"} {
		if got, err := audit.ParseCursor(cursor); !errors.Is(err, audit.ErrInvalidCursor) {
			t.Errorf("%q: got %v, %v", cursor, got, err)
		}
	}
}
