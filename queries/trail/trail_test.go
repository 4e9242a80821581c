package trail_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"lieudit/queries/trail"
	"lieudit/schemas/table"
	"lieudit/schemas/table/tabletest"
)

var begin = time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)

// asked is a history of eight entries of account a, an hour apart, with those of another account in between, and of others.
func asked(t *testing.T, address string, rows ...table.Entry) *trail.Trail {
	t.Helper()
	shelf, err := table.OpenShelf(address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { shelf.Close() })
	c, err := shelf.Build(t.Context(), table.History, false)
	if err != nil {
		t.Fatal(err)
	}
	db, release, err := shelf.Use(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	for i := range int64(8) {
		kind := []string{table.KindAccount, table.KindKeys}[i%2]
		at := table.At(begin.Add(time.Duration(i) * time.Hour))
		rows = append(rows,
			table.Entry{Position: 100 * (i + 1), Account: "a", Recorded: at, Kind: kind, Type: "t", Subject: "s", Actor: "token:1", OnBehalfOf: "g", Reason: "r", Sentence: "did", Data: `{"key":"k"}`},
			table.Entry{Position: 100*(i+1) + 50, Account: "b", Recorded: at, Kind: kind, Data: "{}"})
	}
	if err := db.Tx(t.Context(), func(tx *table.Tx) error { return table.Upsert(t.Context(), tx, table.Entries, rows) }); err != nil {
		t.Fatal(err)
	}
	if err := shelf.Serve(t.Context(), table.History, c); err != nil {
		t.Fatal(err)
	}
	return trail.New(shelf)
}

func TestHistoryAnswersWhatIsAsked(t *testing.T) {
	t.Parallel()
	tabletest.Each(t, func(t *testing.T, address string) {
		tr := asked(t, address)
		for rule, c := range map[string]struct {
			question trail.Question
			want     []uint64
			more     bool
		}{
			"all":             {trail.Question{Limit: 8}, []uint64{100, 200, 300, 400, 500, 600, 700, 800}, false},
			"first page":      {trail.Question{Limit: 3}, []uint64{100, 200, 300}, true},
			"next page":       {trail.Question{Limit: 3, After: trail.Place{Position: 300}}, []uint64{400, 500, 600}, true},
			"last page":       {trail.Question{Limit: 3, After: trail.Place{Position: 600}}, []uint64{700, 800}, false},
			"behind the end":  {trail.Question{Limit: 3, After: trail.Place{Position: 800}}, []uint64{}, false},
			"one kind":        {trail.Question{Limit: 8, Kind: table.KindKeys}, []uint64{200, 400, 600, 800}, false},
			"kind, next page": {trail.Question{Limit: 2, Kind: table.KindKeys, After: trail.Place{Position: 200}}, []uint64{400, 600}, true},
			"from":            {trail.Question{Limit: 8, From: begin.Add(5 * time.Hour)}, []uint64{600, 700, 800}, false},
			"to":              {trail.Question{Limit: 8, To: begin.Add(2 * time.Hour)}, []uint64{100, 200}, false},
			"between":         {trail.Question{Limit: 1, From: begin.Add(time.Hour), To: begin.Add(3 * time.Hour)}, []uint64{200}, true},
		} {
			c.question.Account = "a"
			found, more, err := tr.History(t.Context(), c.question)
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

func TestEntryTellsAllThatIsKnown(t *testing.T) {
	t.Parallel()
	tabletest.Each(t, func(t *testing.T, address string) {
		got, _, err := asked(t, address).History(t.Context(), trail.Question{Account: "a", Limit: 1})
		want := []trail.Entry{{Place: trail.Place{Position: 100}, Account: "a", Time: begin, Type: "t", Kind: table.KindAccount, Subject: "s",
			Actor: "token:1", OnBehalfOf: "g", Reason: "r", Sentence: "did", Data: []byte(`{"key":"k"}`)}}
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Error(diff, err)
		}
	})
}

func TestPartsOfAnEventArePagedLikeEvents(t *testing.T) {
	t.Parallel()
	tabletest.Each(t, func(t *testing.T, address string) {
		tr := asked(t, address, table.Entry{Position: 800, Part: 1, Account: "a", Kind: table.KindSites, Subject: "m/p", Data: "{}"},
			table.Entry{Position: 800, Part: 2, Account: "a", Kind: table.KindSites, Subject: "m/q", Data: "{}"},
			table.Entry{Position: 900, Account: "a", Kind: table.KindSites, Subject: "m/p", Data: "{}"})
		for rule, c := range map[string]struct {
			question trail.Question
			want     []trail.Place
		}{
			"in their order":     {trail.Question{After: trail.Place{Position: 700}}, []trail.Place{{800, 0}, {800, 1}, {800, 2}, {900, 0}}},
			"after one of them":  {trail.Question{After: trail.Place{Position: 800, Part: 1}}, []trail.Place{{800, 2}, {900, 0}}},
			"of a kind":          {trail.Question{Kind: table.KindSites}, []trail.Place{{800, 1}, {800, 2}, {900, 0}}},
			"about one":          {trail.Question{Subject: "m/p"}, []trail.Place{{800, 1}, {900, 0}}},
			"about one, further": {trail.Question{Subject: "m/p", After: trail.Place{Position: 800, Part: 1}}, []trail.Place{{900, 0}}},
			"about none":         {trail.Question{Subject: "m"}, nil},
		} {
			c.question.Account, c.question.Limit = "a", 20
			found, _, err := tr.History(t.Context(), c.question)
			var got []trail.Place
			for _, e := range found {
				got = append(got, e.Place)
			}
			if diff := cmp.Diff(c.want, got); diff != "" || err != nil {
				t.Errorf("%s: %v, %s", rule, err, diff)
			}
		}
	})
}

func TestCursorIsThePlaceItWasMadeOf(t *testing.T) {
	t.Parallel()
	for _, want := range []trail.Place{{}, {Position: 17}, {Position: 1 << 62, Part: 3<<16 | 1}} {
		if got, err := trail.PlaceOf(want.Cursor()); got != want || err != nil {
			t.Errorf("got %v, %v, want %v", got, err, want)
		}
	}
	for _, cursor := range []string{"", "x", "1", "1.", ".1", "1.x", "-1.0", "1.2.3", "9223372036854775808.0"} {
		if got, err := trail.PlaceOf(cursor); !errors.Is(err, trail.ErrCursor) {
			t.Errorf("%q: got %v, %v", cursor, got, err)
		}
	}
}
