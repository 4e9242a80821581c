// Package model says what each answer of the service may be. It is written from SPEC.md and DECISIONS.md alone, never from the code that
// it judges, and is to be read in one sitting. Rules is the table of what is checked. All benches that hold answers to what was
// acknowledged before use it: the simulation, the chaos test, the upgrade test.
//
//	Operation ──> Model.Begin ──> Call … Model.End <── Answer
//	                                       │
//	     access   may this key do that now?│ 401, 403, plans, a second of grace      account: what operators and customers decided
//	     usage    does it count, does it   │ fit under the caps? 429                 places: referentials and sites
//	     orders   does some order of the commands explain the answer? ──────────────> the two above, as sets of possible states
//
// Accounts and places are each a state that commands change one after the other, in the order that the log has and the model does not
// know: package-internal orders keeps every state that is still possible. Usage is counts: what was surely counted, and what may have been.
// At a quiet moment what is shown ends all doubts (Settle…), or is a violation.
package model

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// Answer is what a client gets. Without a Status it got no whole answer: whether the request had an effect is unknown where IsSent.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
	IsSent bool // the request reached an instance
}

// Operation is a request, as far as rules are about it.
type Operation struct {
	Act      string // that makes it
	Text     string // method and path
	Instance int
	Account  string // that it is about; "" for what is about none
	Endpoint string // method and path with variables, as usage names it

	// With an API key.
	Key     string // its label
	Service Service
	Origin  string // that the request says, "" for none
	Weight  int64  // requests that it counts for

	Patience  time.Duration // how long its client waits for an answer; 0: as clients mostly do
	SendsOnce bool          // its client does not send it again when it fails

	// Question names what has one answer whenever it is asked; "": no such question.
	Question string

	// With a token of the customer area.
	Token string // its label

	OnAccount AccountCommand // nil: not such a command
	OnPlaces  PlacesCommand  // nil: not such a command
	OnUsage   *BilledLine    // a correction of what was billed: its requests are added; nil: none
}

// Call is an operation under way.
type Call struct {
	Operation
	began     time.Time
	walls     []time.Time // of the instance: at its begin, before and after each jump, and at its end
	onAccount *step[account]
	onPlaces  *step[places]
}

// Model is safe for concurrent use.
type Model struct {
	// PeriodGrace is how long after its end a period is closed, by the clock of any instance. It is set before the first operation.
	PeriodGrace time.Duration
	// SoleWriters says that every site is written by one client, one request at a time, which alone repeats a write that failed or
	// whose instance died. So an answer shows the site as the client wrote it, and a write of unknown fate that is still on its way
	// to the log conflicts with the next one that is acknowledged. It is set before the first operation.
	SoleWriters bool
	// RefundsInOrder says that an instance refunds what it answered 5xx before it counts a later request of the account, as it does
	// unless its usage log is silent for long. It is set before the first operation.
	RefundsInOrder bool

	mu       sync.Mutex
	accounts map[string]*customer
	tokens   map[string]*areaToken // by label
	book     book
	billed   []BilledLine // at the last quiet moment
	underWay map[*Call]bool
	answers  map[string]string     // to questions
	isFound  map[shownAddress]bool // addresses of sites without a position of their own
	walls    map[int]time.Time     // the latest that an instance's wall clock said
	tell     func(rule Rule, format string, args ...any)
}

// customer is what the model keeps of one account.
type customer struct {
	account *orders[account]
	places  *orders[places]
	ids     map[siteID]string // of sites, which never change
	related map[string]bool   // accounts that it may know of: agencies it ever asked for, or sub-clients

	isUnreadable bool     // see Restore
	secrets      []Secret // of keys, the oldest first
}

// New makes a model of a service that has no account yet. It tells each violation.
func New(tell func(rule Rule, format string, args ...any)) *Model {
	m := &Model{accounts: map[string]*customer{}, tokens: map[string]*areaToken{}, underWay: map[*Call]bool{},
		answers: map[string]string{}, isFound: map[shownAddress]bool{}, walls: map[int]time.Time{}, book: book{}, tell: tell}
	m.tokens[Operator] = &areaToken{role: "operator"}
	return m
}

// report tells a violation of an act; "" is a quiet moment.
func (m *Model) report(rule Rule, act, format string, args ...any) {
	m.tell(rule, act+" "+format, args...)
}

// customer is an account's record. It is made where there is none.
func (m *Model) customer(id string) *customer {
	c := m.accounts[id]
	if c == nil {
		c = &customer{account: newOrders(account{}, true), places: newOrders(places{}, false), ids: map[siteID]string{},
			related: map[string]bool{}}
		c.places.lostConflict = m.SoleWriters
		m.accounts[id] = c
	}
	return c
}

// Begin says that a request is about to be sent. wall is its instance's wall clock.
func (m *Model) Begin(op Operation, wall time.Time) *Call {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := &Call{Operation: op, began: time.Now()}
	m.noteWall(c, wall)
	m.underWay[c] = true
	if op.Account == "" {
		return c
	}
	of := m.customer(op.Account)
	if op.OnAccount != nil {
		m.relate(op)
		c.onAccount = of.account.begin(op.OnAccount, func(a account) (all []outcome[account]) {
			for _, wall := range c.walls {
				all = append(all, op.OnAccount.apply(a, wall)...)
			}
			return all
		})
	}
	if op.OnPlaces != nil {
		c.onPlaces = of.places.begin(op.OnPlaces, func(p places) (all []outcome[places]) {
			for _, l := range m.limitsOf(c) {
				all = append(all, op.OnPlaces.apply(p, l)...)
			}
			return all
		})
	}
	return c
}

// End says what a request was answered, and checks that.
func (m *Model) End(c *Call, a Answer, wall time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.underWay, c)
	m.noteWall(c, wall)
	isRefused := !a.IsSent
	if a.Status != 0 {
		m.checkForeign(c, a)
		if c.Key != "" {
			isRefused = m.checkKey(c, a)
		} else {
			isRefused = m.checkToken(c, a)
		}
	}
	if c.Key != "" {
		m.count(c, a)
	}
	if c.Question != "" && counts(a.Status) {
		m.checkQuestion(c, a)
	}
	if c.OnUsage != nil && !isRefused {
		m.adjust(*c.OnUsage, a)
	}
	if c.onAccount != nil {
		settleStep(m, c, m.customer(c.Account).account, c.onAccount, a, isRefused, func() string { return summarizeAccount(c.OnAccount, a) }, showsAccount)
		m.learnKey(c, a)
	}
	if c.onPlaces != nil {
		settleStep(m, c, m.customer(c.Account).places, c.onPlaces, a, isRefused, func() string { return summarizePlaces(c.OnPlaces, a) }, m.showsSite)
		m.checkSite(c, a)
	}
}

// checkQuestion checks that a question is answered as it was before.
func (m *Model) checkQuestion(c *Call, a Answer) {
	answer := fmt.Sprint(a.Status, " ", string(a.Body))
	switch before, ok := m.answers[c.Question]; {
	case !ok:
		m.answers[c.Question] = answer
	case before != answer:
		m.report(OneAnswer, c.Act, "%s: %s, and before %s", c.Text, answer, before)
	}
}

// noteWall notes what the wall clock of a call's instance says.
func (m *Model) noteWall(c *Call, wall time.Time) {
	c.walls = append(c.walls, wall)
	m.noteLatest(c.Instance, wall)
}

func (m *Model) noteLatest(instance int, wall time.Time) {
	if wall.After(m.walls[instance]) {
		m.walls[instance] = wall
	}
}

// ClockJumps says that the wall clock of an instance says something, and then jumps, or has just jumped. A clock that jumps there and
// back while a request waits is not seen at its begin, nor at its end.
func (m *Model) ClockJumps(instance int, wall time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.noteLatest(instance, wall)
	for c := range m.underWay {
		if c.Instance == instance {
			c.walls = append(c.walls, wall)
		}
	}
}

// settleStep tells the orders of a thing what became of a command.
func settleStep[S state](m *Model, c *Call, o *orders[S], s *step[S], a Answer, isRefused bool, summarize func() string,
	matches func(now S, due, answer string) (is, mayBeLater bool),
) {
	switch {
	case isRefused:
		if !o.refused(s) {
			m.report(OneOrder, c.Act, "%s: %s, and others were answered as if it took effect", c.Text, short(a))
		}
	case a.Status == 0 || a.Status >= 500:
		o.lost(s)
	default:
		answer := summarize()
		if right, ok := o.answered(s, answer, matches); !ok {
			rule := OneOrder
			if sync, isSync := c.OnPlaces.(SyncSites); isSync && sync.IdempotencyKey != "" {
				rule = SameKeySameAnswer
			}
			m.report(rule, c.Act, "%s: got %s, want one of %q: %s", c.Text, answer, right, short(a))
		}
	}
}

// short is an answer for people.
func short(a Answer) string {
	body := string(a.Body)
	if len(body) > 300 {
		body = body[:300] + "…"
	}
	return fmt.Sprint(a.Status, " ", body)
}

// showsAccount reports whether an answer is the one that is due, or shows the account as other commands made it since.
func showsAccount(now account, due, answer string) (is, mayBeLater bool) {
	isSuccess := strings.HasPrefix(due, "20") && strings.HasPrefix(answer, due[:4])
	return due == answer || isSuccess && answer == due[:4]+strings.TrimPrefix(now.show(0)[0].answer, "0 "), isSuccess
}

// showsSite is the same for places. Of a site it is enough that its version is a later one.
func (m *Model) showsSite(_ places, due, answer string) (is, mayBeLater bool) {
	if m.SoleWriters {
		return due == answer, false
	}
	var status, shown struct {
		code, version int
		externalID    string
	}
	_, err := fmt.Sscanf(due, "%d %s v%d", &status.code, &status.externalID, &status.version)
	_, err2 := fmt.Sscanf(answer, "%d %s v%d", &shown.code, &shown.externalID, &shown.version)
	isLater := err == nil && err2 == nil && status.code == shown.code && status.externalID == shown.externalID && shown.version > status.version
	return due == answer || isLater, false
}

// Snapshot is what a model knew at a quiet moment.
type Snapshot struct {
	accounts map[string]*customer
	tokens   map[string]*areaToken
	book     book
	billed   []BilledLine
}

// Snapshot copies what is known.
func (m *Model) Snapshot() Snapshot {
	m.mu.Lock()
	defer m.mu.Unlock()
	return Snapshot{m.accounts, m.tokens, m.book, m.billed}.clone()
}

// Restore makes a snapshot the truth, as after the logs were restored. Secrets that were told since are still tried. Data that was
// erased since stays unreadable: the log says no more why (DESIGN.md, "What operators must be able to rely on").
func (m *Model) Restore(s Snapshot) {
	m.mu.Lock()
	defer m.mu.Unlock()
	old := m.accounts
	s = s.clone()
	m.accounts, m.tokens, m.book, m.billed = s.accounts, s.tokens, s.book, s.billed
	for id, was := range old {
		of := m.customer(id)
		of.secrets = was.secrets
		of.isUnreadable = was.isUnreadable || was.account.possible[0].state.isErased && !of.account.possible[0].state.isErased
	}
}

// HasErasedSince reports whether an account may have been erased since a snapshot.
func (m *Model) HasErasedSince(s Snapshot) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	isErased := func(of *customer) bool {
		return of != nil && slices.ContainsFunc(of.account.possible, func(b branch[account]) bool { return b.state.isErased })
	}
	for id, of := range m.accounts {
		if isErased(of) && !isErased(s.accounts[id]) {
			return true
		}
	}
	return false
}

// IsUnreadable reports whether an account's data was erased on a log that was restored to an older copy since.
func (m *Model) IsUnreadable(id string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return id != "" && m.customer(id).isUnreadable
}

func (s Snapshot) clone() Snapshot {
	c := Snapshot{map[string]*customer{}, map[string]*areaToken{}, book{}, s.billed}
	for id, of := range s.accounts {
		copied := *of
		copied.account, copied.places = of.account.clone(), of.places.clone()
		copied.ids, copied.secrets, copied.related = maps.Clone(of.ids), slices.Clone(of.secrets), maps.Clone(of.related)
		c.accounts[id] = &copied
	}
	for label, t := range s.tokens {
		copied := *t
		c.tokens[label] = &copied
	}
	for _, lines := range s.book {
		for l, n := range lines {
			*c.book.line(l) = count{n.sure, n.maybe, maps.Clone(n.failed)}
		}
	}
	return c
}
