package model

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// write is a command of a sole writer and what it was answered, in short; "": nobody knows.
type write struct {
	command PlacesCommand
	answer  string
}

// put writes the site s with a name.
func put(name string) PutSite { return PutSite{"r", "s", name} }

// syncOf is a sync of the sites 0 to n-1, all in one edition.
func syncOf(n int, edition, key string) SyncSites {
	s := SyncSites{Code: "r", IdempotencyKey: key}
	for i := range n {
		s.Rows = append(s.Rows, Row{fmt.Sprint(i), edition})
	}
	return s
}

// tellWrites tells the orders of a sole writer what its writes were answered, one after the other, and returns the first answer
// that no order explains; "": there is none.
func tellWrites(writes ...write) (o *orders[places], wrong string) {
	o = newOrders(places{}.withReferential("r", referential{name: "r"}), false)
	o.lostConflict = true
	m := &Model{SoleWriters: true}
	for _, w := range append([]write{{syncOf(4, "1", ""), "200 +4 ~0 =0 ^0 -0 0>4 of 0"}}, writes...) {
		s := o.begin(w.command, func(p places) []outcome[places] { return w.command.apply(p, plans[1].limits) })
		time.Sleep(time.Millisecond)
		if w.answer == "" {
			o.lost(s)
		} else if right, ok := o.answered(s, w.answer, m.showsSite); !ok {
			return o, fmt.Sprintf("%s, want one of %q", w.answer, right)
		}
		time.Sleep(time.Millisecond)
	}
	return o, ""
}

// A write that was lost shows in the answer to the next one.
func TestAnAnswerFollowsFromWritesOfUnknownFate(t *testing.T) {
	t.Parallel()
	fresh, again := "200 +0 ~4 =0 ^0 -0 4>4 of 4", "200 +0 ~0 =4 ^0 -0 4>4 of 4"
	plain, keyed := syncOf(4, "2", ""), syncOf(4, "2", "once")
	for name, c := range map[string]struct {
		writes []write
		wrong  bool
	}{
		"it did not happen":                       {[]write{{plain, ""}, {plain, fresh}}, false},
		"it happened":                             {[]write{{plain, ""}, {plain, again}}, false},
		"half of it happened":                     {[]write{{plain, ""}, {plain, "200 +0 ~2 =2 ^0 -0 4>4 of 4"}}, true},
		"with its key it is answered as at first": {[]write{{keyed, ""}, {keyed, fresh}}, false},
		"and not as if it were another":           {[]write{{keyed, ""}, {keyed, again}}, true},
		"so it is when others came between":       {[]write{{keyed, fresh}, {put("a"), "201 s v1 true \"a\""}, {keyed, fresh}}, false},
		"sites are gone":                          {[]write{{plain, ""}, {plain, "200 +4 ~0 =0 ^0 -0 0>4 of 0"}}, true},
		"it is refused for no reason":             {[]write{{plain, "409 reduction_suspecte 4 4"}}, true},
		"a site has a later version":              {[]write{{put("a"), "201 s v2 true \"a\""}}, true},
		"a lost one comes before the next":        {[]write{{put("a"), ""}, {put("b"), "200 s v2 true \"b\""}}, false},
		"and never after it":                      {[]write{{put("a"), ""}, {put("b"), "201 s v1 true \"b\""}, {put("b"), "200 s v3 true \"b\""}}, true},
		"but after one that changed nothing":      {[]write{{put("a"), ""}, {SyncSites{Code: "r", IsUpsert: true, Rows: []Row{{"0", "1"}}}, "200 +0 ~0 =1 ^0 -0 4>4 of 4"}, {put("b"), "200 s v2 true \"b\""}}, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			if _, wrong := tellWrites(c.writes...); (wrong != "") != c.wrong {
				t.Errorf("%s: got %q, want one that is wrong: %v", name, wrong, c.wrong)
			}
		})
	}
}

// The same request sent many times without an answer leaves as few states as one.
func TestAWriteThatIsSentAgainDoesNotMultiplyWhatMayBe(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var writes []write
		for range 40 {
			writes = append(writes, write{put("a"), ""})
		}
		o, wrong := tellWrites(append(writes, write{put("a"), "200 s v1 true \"a\""}, write{put("b"), "200 s v2 true \"b\""})...)
		if wrong != "" || len(o.pending) != 0 || !o.isCertain() {
			t.Errorf("%s, %d writes and %d states are possible; want none and 1", wrong, len(o.pending), len(o.possible))
		}
	})
}

// What is billed is what one instance answered, until it dies: then it may leave refunds undone, but not those before a request
// that it counted later.
func TestBilledRequestsMatchTheAnsweredOnes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		statuses []int // of GET /me, 0 for a broken connection
		isKilled bool  // afterwards
		billed   int64
		want     string
	}{
		"to the request":                      {statuses: []int{200, 200, 404, 409}, billed: 4},
		"answered and not billed":             {statuses: []int{200, 200}, billed: 1, want: "1 are billed, 2 were served and 0"},
		"billed and not asked for":            {statuses: []int{200}, billed: 2, want: "2 are billed, 1 were served and 0"},
		"on its way":                          {statuses: []int{200, 0}, billed: 2},
		"more than was on its way":            {statuses: []int{200, 0}, billed: 3, want: "3 are billed, 1 were served and 1"},
		"failed and not refunded":             {statuses: []int{500, 503}, billed: 2, want: "0 were served and 0"},
		"failed, killed before the refund":    {statuses: []int{200, 500, 503}, isKilled: true, billed: 3},
		"failed, answered after, then killed": {statuses: []int{500, 200}, isKilled: true, billed: 2, want: "1 were served and 0"},
	} {
		synctest.Test(t, func(t *testing.T) {
			var broken []string
			m := New(func(rule Rule, format string, args ...any) { broken = append(broken, fmt.Sprintf(format, args...)) })
			m.RefundsInOrder = true
			say := func(op Operation, status int, body string) {
				now := time.Now()
				m.End(m.Begin(op, now), Answer{Status: status, Body: []byte(body), IsSent: true}, now)
				time.Sleep(2 * time.Second)
			}
			anchor := Day(time.Now())
			say(inArea("a", "POST /accounts", OpenAccount{ID: "a", Name: "A", Plan: "GROWTH", Quota: 100, Anchor: anchor}), 201,
				`{"id":"a","nom":"A","plan":"GROWTH","quota":100}`)
			say(inArea("a", "POST /accounts/{id}/keys", IssueKey{Kind: "secret", Label: "k"}), 201, shownKey1)
			for _, status := range c.statuses {
				op := withKey("k", "GET /me", Addresses, nil)
				op.Account = "a"
				say(op, status, `{}`)
			}
			if c.isKilled {
				m.Died(0)
			}
			m.SettleUsage([]BilledLine{{"a", "a", anchor, anchor, "K1", "GET /me", c.billed}})
			if got := strings.Join(broken, "; "); c.want == "" && got != "" || !strings.Contains(got, c.want) {
				t.Errorf("%s: got %q, want %q", name, got, c.want)
			}
		})
	}
}

// A request may be counted while its key is revoked. It is answered 401 and refunded, unless its instance dies before that.
func TestARequestWhoseKeyEndsMeanwhileMayStayOnTheBill(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		isLater, isKilled, isWrong bool
	}{
		"and the instance dies":         {isKilled: true},
		"and the instance lives":        {isWrong: true},
		"the key had ended long before": {isLater: true, isKilled: true, isWrong: true},
	} {
		synctest.Test(t, func(t *testing.T) {
			var broken []string
			m := New(func(rule Rule, format string, args ...any) { broken = append(broken, fmt.Sprintf(format, args...)) })
			end := func(call *Call, status int, body string) {
				m.End(call, Answer{Status: status, Body: []byte(body), IsSent: true}, time.Now())
				time.Sleep(2 * time.Second)
			}
			begin := func(op Operation) *Call { return m.Begin(op, time.Now()) }
			anchor := Day(time.Now())
			end(begin(inArea("a", "POST /accounts", OpenAccount{ID: "a", Name: "A", Plan: "GROWTH", Quota: 100, Anchor: anchor})), 201,
				`{"id":"a","nom":"A","plan":"GROWTH","quota":100}`)
			end(begin(inArea("a", "POST /accounts/{id}/keys", IssueKey{Kind: "secret", Label: "k"})), 201, shownKey1)
			me := withKey("k", "GET /me", Addresses, nil)
			me.Account = "a"
			request := begin(me)
			end(begin(inArea("a", "POST /accounts/{id}/keys/{key}:revoke", RevokeKey{Label: "k"})), 200, revokedKey1)
			if c.isLater {
				request = begin(me)
			}
			end(request, 401, `{"detail":"Invalid API key"}`)
			if c.isKilled {
				m.Died(0)
			}
			m.SettleUsage([]BilledLine{{"a", "a", anchor, anchor, "K1", "GET /me", 1}})
			if (len(broken) > 0) != c.isWrong {
				t.Errorf("%s: got %q, want a broken rule: %t", name, broken, c.isWrong)
			}
		})
	}
}
