package model

import (
	"fmt"
	"slices"
	"time"
)

// Line is the key that requests are counted under. Contract is the account that pays.
type Line struct{ Account, Contract, Key, Endpoint, Day string }

// count is how many requests were counted: sure ones; those of unknown fate, at most; and those that failed while they were counted: their
// instance refunds them, but not at once, and nobody does if it dies first.
type count struct {
	sure, maybe int64
	failed      map[int][]failure
}

// failure is a number of requests that failed together, and the time.
type failure struct {
	at       time.Time
	requests int64
}

func (c count) most() int64 {
	n := c.sure + c.maybe
	for instance := range c.failed {
		n += c.failedBy(instance)
	}
	return n
}

// failedBy returns how many failed requests an instance may still have to refund.
func (c count) failedBy(instance int) (n int64) {
	for _, f := range c.failed[instance] {
		n += f.requests
	}
	return n
}

// book is everything that was counted, by contract.
type book map[string]map[Line]*count

// line returns the count of a line, which it creates if there is none.
func (b book) line(l Line) *count {
	if b[l.Contract] == nil {
		b[l.Contract] = map[Line]*count{}
	}
	if b[l.Contract][l] == nil {
		b[l.Contract][l] = &count{failed: map[int][]failure{}}
	}
	return b[l.Contract][l]
}

// counts reports whether answers with a status count, DECISIONS 1: they passed the check of the quota, and are not 5xx.
func counts(status int) bool { return slices.Contains([]int{200, 201, 404, 409, 422}, status) }

// count records a request that was answered or lost, and checks its answer against the caps.
func (m *Model) count(c *Call, a Answer) {
	lines, isFailed := m.linesOf(c), m.isFailed(c, a)
	for _, l := range lines {
		n := m.book.line(l)
		switch {
		case !a.IsSent, a.Status != 0 && !isFailed && !counts(a.Status):
		case isFailed && !m.mayCloseSoon(l):
			n.failed[c.Instance] = append(n.failed[c.Instance], failure{time.Now(), c.Weight})
		case a.Status == 0 || isFailed || len(lines) > 1:
			n.maybe += c.Weight
		default:
			n.sure += c.Weight
			if m.RefundsInOrder {
				m.noteRefunds(c, l.Contract)
			}
		}
	}
	m.checkCaps(c, a, lines)
}

// isFailed reports whether a request may have been counted although its answer does not count: it was answered 5xx, or its key ended while it
// was being counted.
func (m *Model) isFailed(c *Call, a Answer) bool {
	if a.Status != 401 {
		return a.Status >= 500
	}
	may, _ := m.gates(c)
	return slices.Contains(may, passes)
}

// noteRefunds forgets the failures that an instance has refunded by now: those before the beginning of a request that it counted.
func (m *Model) noteRefunds(c *Call, contract string) {
	for _, n := range m.book[contract] {
		n.failed[c.Instance] = slices.DeleteFunc(n.failed[c.Instance], func(f failure) bool { return f.at.Before(c.began) })
	}
}

// longestRefund is the longest that a refund may take: as long as the usage log of its instance is out of order.
const longestRefund = time.Minute

// mayCloseSoon reports whether the period of a line may be closed before a request that fails now is refunded. Then the request stays on the
// bill.
func (m *Model) mayCloseSoon(l Line) bool {
	day, err := time.ParseInLocation(time.DateOnly, l.Day, paris)
	if err != nil {
		return false
	}
	_, end := periodAt(m.latest(l.Contract).anchor, day)
	return m.latestWall().Add(longestRefund).After(end.Add(m.PeriodGrace))
}

// checkCaps checks an answer against the caps. Both an answer that counts and a refusal must be right for one of the lines that the request may
// be counted on.
func (m *Model) checkCaps(c *Call, a Answer, lines []Line) {
	isCounted := counts(a.Status)
	if !isCounted && a.Status != 429 {
		return
	}
	reasons := ""
	for _, l := range lines {
		isAbove, isEarly, text := m.compareWithCaps(c, l)
		if isCounted && !isAbove || a.Status == 429 && !isEarly {
			return
		}
		reasons += text
	}
	rule := NoEarlyRefusal
	if isCounted {
		rule = NeverAboveCap
	}
	m.report(rule, c.Act, "%s: %d%s", c.Text, a.Status, reasons)
}

// sameCount is how far apart requests may be that are counted together, on the day of the last one.
const sameCount = 3 * time.Second

// linesOf returns the lines that a request may be counted on: on the day it began, on the day it ended, and at the end of a day on the next
// one. An instance whose clock was set back continues to count in the period that it had reached. An instance that finds a period closed counts
// in the next one, on its first day, and for whoever pays on that day.
func (m *Model) linesOf(c *Call) (all []Line) {
	states := m.customer(c.Account).account.during(c.began)
	add := func(l Line) {
		if !slices.Contains(all, l) {
			all = append(all, l)
		}
	}
	for _, wall := range append(slices.Clone(c.walls), c.walls[len(c.walls)-1].Add(sameCount)) {
		for _, a := range states {
			l := Line{c.Account, a.at(wall).contract(c.Account), c.Key, c.Endpoint, Day(wall)}
			add(l)
			// An account that has left an agency by the clock of one instance may still belong to it by another's.
			if now := a.at(wall); wall.Before(now.before.until) {
				now.agency = now.before.agency
				add(Line{c.Account, now.contract(c.Account), c.Key, c.Endpoint, Day(wall)})
			}
			// An account that leaves an agency through an instance whose clock is behind may have left already by the log's clock.
			add(Line{c.Account, a.at(m.latestWall()).contract(c.Account), c.Key, c.Endpoint, Day(wall)})
			for _, first := range m.laterPeriods(c.Instance, m.latest(l.Contract).anchor, wall) {
				add(Line{c.Account, a.at(first).contract(c.Account), c.Key, c.Endpoint, Day(first)})
			}
		}
	}
	return all
}

// laterPeriods returns the beginnings of the periods after a wall time in which an instance may count at that time: those that its clock has
// come to, and those that may be open instead of one that another instance has closed.
func (m *Model) laterPeriods(instance int, anchor string, wall time.Time) (all []time.Time) {
	add := func(read readings, after time.Duration) {
		for _, at := range slices.Backward(read) {
			come := at.Add(after)
			if !come.After(wall) {
				return
			}
			if first, _ := periodAt(anchor, come); first.After(wall) && !slices.Contains(all, first) {
				all = append(all, first)
			}
		}
	}
	add(m.walls[instance], 0)
	for _, read := range m.walls {
		add(read, sameCount-m.PeriodGrace)
	}
	return all
}

// latestWall returns the latest reading of any instance's wall clock.
func (m *Model) latestWall() (latest time.Time) {
	for _, read := range m.walls {
		if wall := read.latest(); wall.After(latest) {
			latest = wall
		}
	}
	return latest
}

// contract returns the account that pays.
func (a account) contract(id string) string {
	if a.agency != "" {
		return a.agency
	}
	return id
}

// compareWithCaps compares the counts with the account's own cap and its contract's, on one of the lines that a request may be counted on. It
// returns whether an answer would exceed one of them there, whether a 429 would be early, and the numbers.
func (m *Model) compareWithCaps(c *Call, l Line) (isAbove, isEarly bool, text string) {
	isEarly = true
	for _, cap := range []struct {
		of      string
		isMeant func(Line) bool
	}{
		{l.Account, func(other Line) bool { return other.Account == l.Account }},
		{l.Contract, func(Line) bool { return true }},
	} {
		sure, most := m.used(l, cap.isMeant)
		low, high := m.quotas(c, cap.of)
		most += m.onTheWay(c, cap.of)
		isAbove = isAbove || sure > high
		isEarly = isEarly && most+c.Weight <= low
		text += fmt.Sprintf(", %d to %d are counted of %s on %s and its cap is %d to %d", sure, most, cap.of, l.Day, low, high)
	}
	return isAbove, isEarly, text
}

// used sums the requests counted in the period of a line.
func (m *Model) used(l Line, isMeant func(Line) bool) (sure, most int64) {
	anchor := m.customer(l.Contract).account.possible[0].state.anchor
	day, err := time.ParseInLocation(time.DateOnly, l.Day, paris)
	if err != nil {
		return 0, 0
	}
	begin, end := periodAt(anchor, day)
	first, last := Day(begin), Day(end)
	for other, n := range m.book[l.Contract] {
		if other.Day >= first && other.Day < last && isMeant(other) {
			sure, most = sure+n.sure, most+n.most()
		}
	}
	return sure, most
}

// quotas returns the lowest and the highest quota that an account may have had during a call. All instances share one count, so a quota that
// has begun by the clock of any of them may be in force.
func (m *Model) quotas(c *Call, id string) (low, high int64) {
	walls := slices.Clone(c.walls)
	for _, read := range m.walls {
		walls = append(walls, read.latest())
	}
	var all []int64
	for _, a := range m.customer(id).account.during(c.began.Add(-grace)) {
		for _, wall := range walls {
			now := a.at(wall)
			all = append(all, now.terms.Quota)
			if wall.Before(now.formerTerms.until) {
				all = append(all, now.formerTerms.Quota)
			}
		}
	}
	if len(all) == 0 { // the account is not known
		return 0, 0
	}
	return slices.Min(all), slices.Max(all)
}

// onTheWay sums the unanswered requests of an account, or of a contract.
func (m *Model) onTheWay(c *Call, id string) (n int64) {
	for other := range m.underWay {
		if other != c && other.Key != "" && (other.Account == id || m.mayBeOf(other, id)) {
			n += other.Weight
		}
	}
	return n
}

// Died records that an instance was killed, or could not finish its counting at its end: the requests of it that failed since the last quiet
// moment may stay counted.
func (m *Model) Died(instance int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, lines := range m.book {
		for _, n := range lines {
			n.maybe += n.failedBy(instance)
			delete(n.failed, instance)
		}
	}
}

// PickBilled returns one of the lines that were billed at the last quiet moment.
func (m *Model) PickBilled(number int) (BilledLine, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.billed) == 0 {
		return BilledLine{}, false
	}
	return m.billed[number%len(m.billed)], true
}

// BilledOf returns how many requests were billed to a contract in a period at the last quiet moment.
func (m *Model) BilledOf(contract, period string) (n int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, b := range m.billed {
		if b.Contract == contract && b.Period == period {
			n += b.Requests
		}
	}
	return n
}

// adjust records a correction. A correction of unknown fate may or may not be counted.
func (m *Model) adjust(b BilledLine, a Answer) {
	n := m.book.line(Line{b.Account, b.Contract, m.labelOf(b.Account, b.Key), b.Endpoint, b.Day})
	switch {
	case a.Status == 200:
		n.sure += b.Requests
	case a.Status != 0 && a.Status < 500:
	case b.Requests < 0:
		n.sure += b.Requests
		n.maybe -= b.Requests
	default:
		n.maybe += b.Requests
	}
}
