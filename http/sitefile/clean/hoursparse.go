package clean

import "slices"

// hoursParser reads the tokens of a text from left to right as rules. A rule is days and then their times, or times and then their
// days, or days that are closed.
//
//	Mo-Fr 09:00-12:30,14:00-19:00; Sa 09:00-12:00             days times ; days times
//	de 10h à 18h du mardi au dimanche                         times days
//	tous les jours sauf le mardi de 10h à 18h. Fermé à Noël   days except times . closed, and a word that ends it
//
// Anything that does not fit, or gives one day twice, ends the reading without a result.
type hoursParser struct {
	tokens []token
	isOSM  bool
	rules  []hoursRule
}

// hoursRule is days with their times, without times if the days are closed.
type hoursRule struct {
	days        daySet
	hasDays     bool // there may be no days: public holidays alone
	spans       []span
	isClosed    bool
	isAdded     bool // in OSM's form after a comma: the times are added to those of the days
	isComplete  bool // nothing more can be added to it
	hasHolidays bool
}

// isOpen reports whether the rule still needs times, or may take more.
func (r *hoursRule) isOpen() bool { return r.hasDays && !r.isClosed && !r.isComplete }

// next is the kind of the next token, unknownToken behind the last one.
func (p *hoursParser) next() tokenKind {
	if len(p.tokens) == 0 {
		return unknownToken
	}
	return p.tokens[0].kind
}

// take takes the next token. There must be one.
func (p *hoursParser) take() token {
	t := p.tokens[0]
	p.tokens = p.tokens[1:]
	return t
}

// isBefore reports whether the next two tokens are of these kinds.
func (p *hoursParser) isBefore(first, second tokenKind) bool {
	return len(p.tokens) > 1 && p.tokens[0].kind == first && p.tokens[1].kind == second
}

// parse reads all tokens. isTimesFirst says that the text begins with times; separator is the sign just before the next token.
func (p *hoursParser) parse() (week, bool) {
	isTimesFirst, separator := false, ruleToken
	for len(p.tokens) > 0 {
		ok := true
		switch kind := p.next(); kind {
		case dayToken, holidayToken:
			ok = p.readDays(isTimesFirst, separator)
		case timeToken, numberToken, allDayToken:
			isTimesFirst = isTimesFirst || len(p.rules) == 0
			ok = p.readTimes(isTimesFirst)
		case closedToken:
			ok = p.readClosed()
		case exceptToken:
			ok = p.readExcept()
		case colonToken: // lundi : | mardi : 9h-12h has no hours for lundi
			p.take()
			continue
		default: // separators
			p.take()
			p.separate(kind, isTimesFirst)
			separator = kind
			continue
		}
		if separator = unknownToken; !ok {
			return week{}, false
		}
	}
	return p.buildWeek()
}

// last is the rule that is being read, nil before the first.
func (p *hoursParser) last() *hoursRule {
	if len(p.rules) == 0 {
		return nil
	}
	return &p.rules[len(p.rules)-1]
}

// separate ends a rule that has its times at a semicolon, a point or the end of a line.
func (p *hoursParser) separate(kind tokenKind, isTimesFirst bool) {
	if r := p.last(); r != nil && kind == ruleToken && r.hasDays && (len(r.spans) > 0 || isTimesFirst) {
		r.isComplete = true
	}
}

// readDays reads days, and begins a rule with them; or adds them to a rule that has only its times, or is closed.
func (p *hoursParser) readDays(isTimesFirst bool, separator tokenKind) bool {
	days, hasHolidays, ok := p.readDaySet()
	if !ok {
		return false
	}
	r := p.last()
	switch {
	case r != nil && !r.hasDays: // fermé le lundi; 10h-18h le mardi
		r.days, r.hasDays, r.hasHolidays, r.isComplete = days, true, hasHolidays, true
		return true
	case r != nil && r.isOpen() && len(r.spans) == 0, isTimesFirst:
		return false // days without times
	}
	p.rules = append(p.rules, hoursRule{days: days, hasDays: true, hasHolidays: hasHolidays, isAdded: separator != ruleToken})
	return true
}

// readDaySet reads days, ranges and lists of them.
func (p *hoursParser) readDaySet() (days daySet, hasHolidays, ok bool) {
	for {
		t := p.take()
		days |= t.days
		hasHolidays = hasHolidays || t.kind == holidayToken
		for isSingleDay(t.days) && p.isBefore(rangeToken, dayToken) {
			p.take()
			end := p.take()
			if !isSingleDay(end.days) {
				return 0, false, false
			}
			days |= dayRange(t.days, end.days)
			if dayRange(t.days, end.days) != t.days|end.days && p.isBefore(rangeToken, dayToken) {
				return 0, false, false // lundi-mercredi-samedi; vendredi-samedi-dimanche is read
			}
			t = end
		}
		if p.isBefore(listToken, dayToken) || p.isBefore(listToken, holidayToken) {
			p.take()
		}
		if !isDays(p.next()) {
			return days, hasHolidays, true
		}
	}
}

// isDays reports whether a token names days.
func isDays(kind tokenKind) bool { return kind == dayToken || kind == holidayToken }

// isSingleDay reports whether a set has one day: only such begin or end a range.
func isSingleDay(days daySet) bool { return days != 0 && days&(days-1) == 0 }

// dayRange is the days from one to another, over Sunday if need be.
func dayRange(from, to daySet) (days daySet) {
	for day := from; ; day = day<<1&everyDay | day>>6 {
		days |= day
		if day == to {
			return days
		}
	}
}

// readTimes reads one time from one hour to another, or 24h/24, and adds it to the rule or begins one with it.
func (p *hoursParser) readTimes(isTimesFirst bool) bool {
	s, ok := p.readSpan()
	if !ok {
		return false
	}
	r := p.last()
	if isTimesFirst && (r == nil || r.hasDays) {
		p.rules = append(p.rules, hoursRule{})
		r = p.last()
	}
	if r.isClosed || r.isComplete || !isTimesFirst && !r.hasDays {
		return false
	}
	r.spans = append(r.spans, s)
	return true
}

// readSpan reads a time from one hour to another. An hour without a sign counts if the other one has a sign.
func (p *hoursParser) readSpan() (span, bool) {
	from := p.take()
	if from.kind == allDayToken {
		return span{0, wholeDay}, true
	}
	if p.next() != rangeToken && !p.isSlashBeforeTime() {
		return span{}, false
	}
	p.take()
	if next := p.next(); next != timeToken && next != numberToken {
		return span{}, false
	}
	to := p.take()
	if from.kind == numberToken && to.kind == numberToken || from.isHalfDay != to.isHalfDay {
		return span{}, false // 9-12 may be anything, and 9:30-11 pm morning or evening
	}
	return newSpan(from.minutes, to.minutes)
}

// isSlashBeforeTime reports whether a slash and a time come next: 9h/12h - 14h/19h. After a time without a - it is the range.
func (p *hoursParser) isSlashBeforeTime() bool {
	return len(p.tokens) > 1 && p.tokens[0].isSlash && (p.tokens[1].kind == timeToken || p.tokens[1].kind == numberToken)
}

// longestNight is the longest time over midnight, in minutes, that is not an error: 6h-1h, but not 14h-12h.
const longestNight = 20 * 60

// newSpan is the span between two times. One that ends before it begins ends on the next day. From a time to the same is not a span: people
// write 00:00-00:00 for all day and for closed.
func newSpan(from, to int) (span, bool) {
	if from == wholeDay {
		from = 0 // minuit
	}
	if to < from {
		to += wholeDay
	}
	isNight := to > wholeDay
	return span{from, to}, from < wholeDay && to != from && to <= from+wholeDay && (!isNight || to-from <= longestNight)
}

// readClosed closes the days before the word that have no times, or the days after it.
func (p *hoursParser) readClosed() bool {
	p.take()
	if r := p.last(); r != nil && !r.hasDays && len(p.rules) == 1 && len(r.spans) > 0 && p.isClosedOnDays() { // 9h-19h, fermé le dimanche
		r.days, r.hasDays, r.isComplete = everyDay, true, true
	}
	if r := p.last(); r != nil && r.isOpen() && len(r.spans) == 0 {
		r.isClosed, r.isComplete = true, true
		return true
	}
	if r := p.last(); r != nil && !r.hasDays {
		return false
	}
	p.rules = append(p.rules, hoursRule{isClosed: true})
	return true
}

// isClosedOnDays reports whether only days follow the word for closed.
func (p *hoursParser) isClosedOnDays() bool {
	if len(p.tokens) == 0 {
		return false
	}
	for _, t := range p.tokens {
		if !isDays(t.kind) && t.kind != listToken && t.kind != rangeToken && t.kind != ruleToken {
			return false
		}
	}
	return true
}

// readExcept removes days from the rule before it. Times after them are not read: it is not clear to which days they would belong.
func (p *hoursParser) readExcept() bool {
	p.take()
	r := p.last()
	if r != nil && !r.hasDays && len(p.rules) == 1 && len(r.spans) > 0 { // 9h-19h sauf le dimanche
		r.days, r.hasDays = everyDay, true
	}
	if r == nil || !r.hasDays || r.isClosed || !isDays(p.next()) {
		return false
	}
	days, hasHolidays, ok := p.readDaySet()
	if days&^r.days != 0 {
		return false
	}
	r.days &^= days
	r.hasHolidays = r.hasHolidays || hasHolidays
	r.isComplete = r.isComplete || len(r.spans) > 0
	return ok
}

// buildWeek makes a week of the rules.
func (p *hoursParser) buildWeek() (w week, ok bool) {
	for i := range p.rules {
		r := &p.rules[i]
		w.hasHolidays = w.hasHolidays || r.hasHolidays
		switch {
		case !r.hasDays && len(p.rules) == 1 && slices.Equal(r.spans, []span{{0, wholeDay}}):
			r.days = everyDay // 24h/24 alone
		case !r.hasDays || len(r.spans) == 0 && !r.isClosed:
			return w, false
		}
	}
	if p.isOSM {
		ok = p.applyInOrder(&w)
	} else {
		ok = p.applyOnce(&w)
	}
	return w, ok && w.isValid()
}

// applyInOrder applies rules as OSM defines them: a rule replaces the earlier rules for its days, but after a comma it adds to them.
// A rule that would replace other hours of the day, such as a morning by an afternoon, may be meant differently: then it is not ok.
func (p *hoursParser) applyInOrder(w *week) bool {
	for _, r := range p.rules {
		for day := range 7 {
			switch {
			case r.days&(1<<day) == 0:
			case r.isAdded && !r.isClosed:
				w.spans[day] = append(w.spans[day], r.spans...)
			case !r.isClosed && len(w.spans[day]) > 0 && !overlap(w.spans[day], r.spans):
				return false
			default:
				w.spans[day] = slices.Clone(r.spans)
			}
		}
	}
	return true
}

// overlap reports whether a span of one list overlaps one of the other.
func overlap(list, other []span) bool {
	return slices.ContainsFunc(list, func(a span) bool {
		return slices.ContainsFunc(other, func(b span) bool { return a.from < b.to && b.from < a.to })
	})
}

// applyOnce applies rules as sentences mean them: each day has its times from one rule, or from several with the same days. Closed
// days are exceptions, wherever they stand, but not a single day that is said to be both open and closed.
func (p *hoursParser) applyOnce(w *week) bool {
	var givenBy [7]daySet
	var closed daySet
	for _, r := range p.rules {
		if r.isClosed {
			closed |= r.days
			continue
		}
		for day := range 7 {
			if r.days&(1<<day) == 0 {
				continue
			}
			if givenBy[day] != 0 && givenBy[day] != r.days {
				return false
			}
			givenBy[day] = r.days
			w.spans[day] = append(w.spans[day], r.spans...)
		}
	}
	for day := range 7 {
		if closed&(1<<day) != 0 {
			if isSingleDay(givenBy[day]) {
				return false
			}
			w.spans[day] = nil
		}
	}
	return true
}

// readDayText reads the times of one day: 9h-12h / 14h-18h, or fermé.
func readDayText(s string) ([]span, bool) {
	tokens, ok := splitHours(s)
	if !ok || len(s) > maxHoursText {
		return nil, false
	}
	p := hoursParser{tokens: tokens}
	var spans []span
	isClosed := false
	for len(p.tokens) > 0 {
		switch p.next() {
		case closedToken:
			p.take()
			isClosed = true
		case listToken, ruleToken, rangeToken:
			p.take()
		case timeToken, numberToken, allDayToken:
			s, ok := p.readSpan()
			if !ok {
				return nil, false
			}
			spans = append(spans, s)
		default:
			return nil, false
		}
	}
	return spans, isClosed != (len(spans) > 0)
}
