package chaos

import (
	"net/http"
	"strings"
	"testing"

	"lieudit/schemas/plan"
)

// newActiveReferential is a referential of a STARTER account whose sites 0 to n-1 are active, in edition 1.
func newActiveReferential(t *testing.T, n int) *referential {
	t.Helper()
	f := newAccount("a", plan.Starter, unlimitedQuota, 300).referentials[0]
	w := write{action: syncSites}
	for id := range n {
		w.rows = append(w.rows, row{id, 1})
	}
	answered := outcome{Status: http.StatusOK, Created: n, After: n}
	if err := f.acknowledge(w, answered); err != nil {
		t.Fatal(err)
	}
	return f
}

func TestTheModelAnswersAsTheServiceDoes(t *testing.T) {
	t.Parallel()
	sites := func(ids ...int) (rows []row) {
		for _, id := range ids {
			rows = append(rows, row{id, 2})
		}
		return rows
	}
	many := make([]int, 221)
	for i := range many {
		many[i] = i
	}
	refused := func(code string) outcome { return outcome{Status: http.StatusConflict, Code: code} }
	for name, c := range map[string]struct {
		first []write // before
		write write
		want  outcome
	}{
		"a sync creates, updates and deactivates": {
			write: write{action: syncSites, rows: sites(2, 3, 9)},
			want:  outcome{Status: 200, Created: 1, Updated: 2, Deactivated: 2, Before: 4, After: 3},
		},
		"the same again is unchanged": {
			write: write{action: syncSites, rows: []row{{0, 1}, {1, 1}, {2, 1}, {3, 1}}},
			want:  outcome{Status: 200, Unchanged: 4, Before: 4, After: 4},
		},
		"more than half are not deactivated":      {write: write{action: syncSites, rows: sites(0)}, want: refused("reduction_suspecte")},
		"unless that is confirmed":                {write: write{action: syncSites, rows: sites(0), confirmed: true}, want: outcome{Status: 200, Updated: 1, Deactivated: 3, Before: 4, After: 1}},
		"no more than the ceiling":                {write: write{action: syncSites, rows: sites(many...)}, want: refused("capacite_sites_depassee")},
		"an upsert deactivates nothing":           {write: write{action: upsert, rows: sites(3, 9)}, want: outcome{Status: 200, Created: 1, Updated: 1, Before: 4, After: 5}},
		"a put creates":                           {write: write{action: put, rows: sites(9)}, want: outcome{Status: 201, Edition: 2, Version: 1, Active: true}},
		"a put reactivates":                       {first: []write{{action: deactivate, rows: sites(0)}}, write: write{action: put, rows: sites(0)}, want: outcome{Status: 200, Edition: 2, Version: 3, Active: true}},
		"a patch does not":                        {first: []write{{action: deactivate, rows: sites(0)}}, write: write{action: patch, rows: sites(0)}, want: outcome{Status: 200, Edition: 2, Version: 3}},
		"a site that is not there is not patched": {write: write{action: patch, rows: sites(9)}, want: outcome{Status: 404}},
		"twice deactivated is once":               {first: []write{{action: deactivate, rows: sites(0)}}, write: write{action: deactivate, rows: sites(0)}, want: outcome{Status: 200, Edition: 1, Version: 2}},
		"a reactivated site is as it was":         {first: []write{{action: deactivate, rows: sites(0)}}, write: write{action: reactivate, rows: sites(0)}, want: outcome{Status: 200, Edition: 1, Version: 3, Active: true}},
	} {
		f := newActiveReferential(t, 4)
		s := f.possible[0]
		for _, w := range c.first {
			s, _ = w.apply(s, f.account.limits)
		}
		if _, got := c.write.apply(s, f.account.limits); got.visible(c.write) != c.want {
			t.Errorf("%s: got %+v, want %+v", name, got.visible(c.write), c.want)
		}
	}
}

// A state that was read must follow from the acknowledged writes and, where a write is in doubt, from that write done or not
// done.
func TestAReferentialMatchesOnlyPossibleStates(t *testing.T) {
	t.Parallel()
	set := func(edition int, ids ...int) state {
		s := state{sites: map[int]siteRecord{}}
		for _, id := range ids {
			s = s.with(id, siteRecord{edition, int64(edition), true})
		}
		return s
	}
	doubtful := write{action: syncSites, rows: []row{{0, 2}, {1, 2}, {2, 2}, {3, 2}}}
	half := set(2, 0, 1).with(2, siteRecord{1, 1, true}).with(3, siteRecord{1, 1, true})
	for name, c := range map[string]struct {
		doubt []write
		found state
		want  string // in the violation; empty: none
	}{
		"what was acknowledged":         {found: set(1, 0, 1, 2, 3)},
		"a site is lost":                {found: set(1, 0, 1, 3), want: "site-00002: acknowledged edition 1 version 1 active true, found nothing"},
		"everything is lost":            {found: state{}, want: "4 sites differ"},
		"a site nobody wrote":           {found: set(1, 0, 1, 2, 3, 4), want: "acknowledged nothing"},
		"a write nobody sent":           {found: set(2, 0, 1, 2, 3), want: "version 2"},
		"a sync in doubt happened":      {doubt: []write{doubtful}, found: set(2, 0, 1, 2, 3)},
		"a sync in doubt did not":       {doubt: []write{doubtful}, found: set(1, 0, 1, 2, 3)},
		"half of it did":                {doubt: []write{doubtful}, found: half, want: "none of the 2 states"},
		"it happened twice":             {doubt: []write{doubtful, doubtful}, found: set(2, 0, 1, 2, 3).with(0, siteRecord{2, 3, true}), want: "1 sites differ"},
		"a site is inactive for no one": {found: set(1, 0, 1, 2, 3).with(1, siteRecord{1, 2, false}), want: "active false"},
	} {
		f := newActiveReferential(t, 4)
		for _, w := range c.doubt {
			f.recordDoubt(w)
		}
		got := ""
		if err := f.matchState(c.found); err != nil {
			got = err.Error()
		}
		if c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

// A write that was lost shows in the answer to the next one.
func TestAnAnswerMustFollowFromAPossibleState(t *testing.T) {
	t.Parallel()
	all := write{action: syncSites, rows: []row{{0, 2}, {1, 2}, {2, 2}, {3, 2}}}
	keyed := all
	keyed.key = "once"
	fresh, again := outcome{Status: 200, Updated: 4, Before: 4, After: 4}, outcome{Status: 200, Unchanged: 4, Before: 4, After: 4}
	for name, c := range map[string]struct {
		doubt, write write
		said         outcome
		ok           bool
	}{
		"it did not happen":                       {all, all, fresh, true},
		"it happened":                             {all, all, again, true},
		"half of it happened":                     {all, all, outcome{Status: 200, Updated: 2, Unchanged: 2, Before: 4, After: 4}, false},
		"with its key it is answered as at first": {keyed, keyed, fresh, true},
		"and not as if it were another":           {keyed, keyed, again, false},
		"sites are gone":                          {all, all, outcome{Status: 200, Created: 4, After: 4}, false},
		"it is refused for no reason":             {all, all, outcome{Status: 409, Code: "reduction_suspecte"}, false},
	} {
		f := newActiveReferential(t, 4)
		f.recordDoubt(c.doubt)
		if err := f.acknowledge(c.write, c.said); (err == nil) != c.ok {
			t.Errorf("%s: got %v, want ok %v", name, err, c.ok)
		}
	}
}

// A write that changed nothing appended nothing, so a write in doubt before it may still happen.
func TestAWriteStaysInDoubtUntilALaterOneIsAppended(t *testing.T) {
	t.Parallel()
	f := newActiveReferential(t, 4)
	f.recordDoubt(write{action: put, rows: []row{{9, 2}}})
	if err := f.acknowledge(write{action: deactivate, rows: []row{{0, 1}}}, outcome{Status: 200, Edition: 1, Version: 2}); err != nil {
		t.Fatal(err)
	}
	if len(f.possible) != 2 || len(f.inDoubt) != 0 {
		t.Errorf("after a write that was appended: %d states, %d doubts; want 2 and 0", len(f.possible), len(f.inDoubt))
	}
	f = newActiveReferential(t, 4)
	f.recordDoubt(write{action: put, rows: []row{{9, 2}}})
	if err := f.acknowledge(write{action: reactivate, rows: []row{{0, 1}}}, outcome{Status: 200, Edition: 1, Version: 1, Active: true}); err != nil {
		t.Fatal(err)
	}
	if len(f.possible) != 2 || len(f.inDoubt) != 1 {
		t.Errorf("after a write that changed nothing: %d states, %d doubts; want 2 and 1", len(f.possible), len(f.inDoubt))
	}
}

func TestARepeatedKeyedSyncHasItsFirstAnswer(t *testing.T) {
	t.Parallel()
	f := newActiveReferential(t, 4)
	w := write{action: syncSites, rows: []row{{0, 1}, {1, 1}, {2, 1}}, key: "once"}
	answered := outcome{Status: 200, Unchanged: 3, Deactivated: 1, Before: 4, After: 3}
	if err := f.acknowledge(w, answered); err != nil {
		t.Fatal(err)
	}
	if err := f.checkRepeat(answered); err != nil {
		t.Error(err)
	}
	if err := f.checkRepeat(outcome{Status: 200, Unchanged: 3, Before: 3, After: 3}); err == nil {
		t.Error("another answer passed")
	}
}

func TestBilledRequestsMatchTheAnsweredOnes(t *testing.T) {
	t.Parallel()
	at := &serverProcess{}
	for name, c := range map[string]struct {
		statuses []int // of GET /me, 0 for a broken connection
		killed   bool  // afterwards
		billed   int64
		want     string
	}{
		"to the request":                      {statuses: []int{200, 200, 404, 409}, billed: 4},
		"answered and not billed":             {statuses: []int{200, 200}, billed: 1, want: "2 requests of GET /me were answered and only 1 are billed"},
		"billed and not asked for":            {statuses: []int{200}, billed: 2, want: "no more than 0"},
		"on its way":                          {statuses: []int{200, 0}, billed: 2},
		"more than was on its way":            {statuses: []int{200, 0}, billed: 3, want: "no more than 1"},
		"failed and not refunded":             {statuses: []int{500, 503}, billed: 2, want: "no more than 0"},
		"failed, killed before the refund":    {statuses: []int{200, 500, 503}, killed: true, billed: 3},
		"failed, answered after, then killed": {statuses: []int{500, 200}, killed: true, billed: 2, want: "no more than 0"},
		"refused":                             {statuses: []int{429, 401, 400}, billed: 1, want: "0 were answered"},
	} {
		b := newBill()
		for _, status := range c.statuses {
			b.recordAnswer(at, billLine{"a", "GET /me"}, status)
		}
		if c.killed {
			b.recordKill(at)
		}
		_, wrong := b.compareBilled("a", map[string]int64{"GET /me": c.billed})
		if got := strings.Join(wrong, "; "); c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}
