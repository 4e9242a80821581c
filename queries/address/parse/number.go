package parse

import (
	"strings"

	"lieudit/queries/address/text"
)

// maxChoices bounds the numbers of a list that are searched. Each is looked up in each street, and longer lists are
// rare.
const maxChoices = 4

// Choice is one number of an address as it was typed.
type Choice struct {
	Number uint32
	Rep    string // the repetition index, as typed; empty without one
	RepAt  Mask
	At     int  // the term of the number; -1 if it is not a term in digits
	Letter Mask // a letter that may also shorten or begin a word; it is a repetition index only if the street has it
}

// HouseNumber is the house number of a question for one street. It depends on the street, because numbers in the
// name of the street are not house numbers.
type HouseNumber struct {
	At          Mask // its terms, with those of its repetition index and of the rest of a list
	Choices     [maxChoices]Choice
	Count       int  // of the choices; they are tried in their order
	IsList      bool // several numbers were typed
	IsAmbiguous bool // the number may just as well belong to a complement
}

// IsTyped reports whether there is a number.
func (n *HouseNumber) IsTyped() bool { return n.Count > 0 }

// numberGroup is one number, or several that a sign makes one: 13/15, 4 à 6, 3-avr.
type numberGroup struct {
	from, to int // terms
	choices  []Choice
	isOwned  bool // a word of a complement or a letter before it owns it
	inParens bool
	opens    bool // nothing but numbers that no complement owns stands before it
}

func (group *numberGroup) mask() Mask { return Span(group.from, group.to) }

// AreOneNumber reports whether terms belong to one number, which may be the house number. It is false for no terms.
func (q *Question) AreOneNumber(terms Mask) bool {
	for i := range q.numberGroups {
		if terms&^q.numberGroups[i].mask() == 0 {
			return true
		}
	}
	return terms == 0
}

// numberReader finds the numbers that may be house numbers.
type numberReader struct{ *Question }

// readNumbers finds every number that may be a house number. HouseNumber chooses among them once a street is
// known.
func (r numberReader) readNumbers() {
	opens := true
	for i := 0; i < len(r.Terms); {
		group, ok := r.readNumberGroup(i)
		if !ok {
			opens = opens && (r.Terms[i].Part || r.InParens.Has(i))
			i++
			continue
		}
		group.opens = opens && !group.inParens
		opens = opens && (!group.isOwned || group.inParens)
		r.addNumberGroup(group)
		i = group.to
	}
}

// addNumberGroup adds a number. A number that a sign or a word such as "et" joins to the one before extends that
// group. A comma joins numbers only at the beginning of the line, where no street has been named yet.
func (r numberReader) addNumberGroup(group numberGroup) {
	if n := len(r.numberGroups); n > 0 {
		last := &r.numberGroups[n-1]
		isNext := last.to == group.from && r.Terms[group.from].Before&text.Join != 0 ||
			last.to == group.from && last.opens && r.Terms[group.from].Before&text.Break != 0 ||
			last.to+1 == group.from && isListWord(r.Terms[last.to].Typed)
		if isNext && last.isOwned == group.isOwned && last.inParens == group.inParens && len(last.choices) < maxChoices {
			last.to, last.choices = group.to, append(last.choices, group.choices...)
			return
		}
	}
	r.numberGroups = append(r.numberGroups, group)
}

// isListWord reports whether a word between two numbers makes them a list or a range: 4 à 6, 4 et 6.
func isListWord(word string) bool { return word == "a" || word == "et" || word == "ou" || word == "au" }

// readNumberGroup reads a number with its repetition index from term i on. A number of more than four digits is seldom a house number
// (isLongNumber), and that of a road (RD 1006) never. The tail "e" is allowed, because 5e is also written for 5
// E.
func (r numberReader) readNumberGroup(i int) (group numberGroup, ok bool) {
	t := r.Terms[i]
	if (r.Postal | r.Postcode.At | r.floors).Has(i) {
		return group, false
	}
	if !t.Digits {
		return r.readNumberInLetters(i)
	}
	if len(t.Typed) > 4 && !r.isLongNumber(i) || t.Tail != "" && t.Tail != "e" || r.isRoadNumber(i) {
		return group, false
	}
	c := Choice{Number: Number(t.Typed), Rep: t.Tail, At: i}
	group = numberGroup{from: i, to: i + 1, inParens: r.InParens.Has(i)}
	group.isOwned = r.Complement.Has(i) || i > 0 && t.Glued && isLetter(r.Terms[i-1]) && !r.isRepBehind(i-1)
	if group.to < len(r.Terms) && c.Rep == "" && !r.Complement.Has(group.to) {
		switch {
		case r.IsRep(group.to):
			to := r.repEnd(group.to)
			c.Rep, c.RepAt = r.Typed(Span(group.to, to)), Span(group.to, to)
			r.Reps |= c.RepAt
			group.to = to
		case r.mayBeLetterRep(group.to):
			c.Letter = Bit(group.to)
		}
	}
	group.choices = append(make([]Choice, 0, 2), c)
	return r.readDate(group), true
}

// isLongNumber reports whether five digits are a house number: in its field, or before a kind of street if the postcode stands
// elsewhere.
func (r numberReader) isLongNumber(i int) bool {
	isBeforeType := i+1 < len(r.Terms) && r.IsStreetType(i+1)
	return len(r.Terms[i].Typed) == 5 && (r.isInNumberField(i) || isBeforeType && r.Postcode.Code != 0)
}

// repEnd is the term after the repetition index that begins at term i. A letter and a Latin one are one index: 42 a bis.
func (q *Question) repEnd(i int) int {
	if to := i + 1; to < len(q.Terms) && isLetter(q.Terms[i]) && isRepWord(q.Terms[to].Typed) {
		return to + 1
	}
	return i + 1
}

// isRepBehind reports whether a letter belongs to the number before it: 2A 2.
func (r numberReader) isRepBehind(i int) bool {
	return i > 0 && r.Terms[i-1].Digits && !r.Terms[i].Glued
}

// isLetter reports whether a term is a single letter that stands for itself.
func isLetter(t text.Term) bool { return len(t.Typed) == 1 && !t.Digits && !t.Elided }

// readNumberInLetters reads a number that does not begin with a digit: a date into which a spreadsheet changed
// 4/13 (avr-13), or a number in words at the beginning of the line.
func (r numberReader) readNumberInLetters(i int) (group numberGroup, ok bool) {
	t := r.Terms[i]
	if m := month(t.Typed); m > 0 && i+1 < len(r.Terms) && r.Terms[i+1].Digits && r.Terms[i+1].Before&text.Join != 0 && len(r.Terms[i+1].Typed) <= 2 {
		return numberGroup{from: i, to: i + 2, choices: []Choice{{Number: m, At: -1}, {Number: Number(r.Terms[i+1].Typed), At: -1}}}, true
	}
	if i == 0 {
		if group, ok := r.readSpelled(); ok {
			return group, true
		}
	}
	return group, false
}

// readSpelled reads a number in words that opens the line: vingt-quatre bis rue. A kind of street must follow,
// since many names begin with a numeral: Quatre Vents.
func (r numberReader) readSpelled() (group numberGroup, ok bool) {
	n, to := r.spelledNumber()
	c := Choice{Number: n, At: -1}
	if n > 0 && to < len(r.Terms) && r.IsRep(to) {
		c.Rep, c.RepAt = r.Terms[to].Typed, Bit(to)
		to++
	}
	if n == 0 || to >= len(r.Terms) || text.ClassOf(r.Terms[to].Text) != text.StreetType {
		return group, false
	}
	r.Reps |= c.RepAt
	return numberGroup{from: 0, to: to, choices: []Choice{c}}, true
}

// readDate reads the name of a month behind a number as the second number. A spreadsheet changes 3/4 into 3-avr.
func (r numberReader) readDate(group numberGroup) numberGroup {
	if i := group.to; i < len(r.Terms) && r.Terms[i].Before&text.Join != 0 {
		if m := month(r.Terms[i].Typed); m > 0 {
			group.to++
			group.choices = append(group.choices, Choice{Number: m, At: -1})
		}
	}
	return group
}

// month is the number of a month that is shortened as spreadsheets shorten it, or 0.
func month(word string) uint32 {
	switch word {
	case "janv", "jan":
		return 1
	case "fevr", "fev":
		return 2
	case "mars":
		return 3
	case "avr":
		return 4
	case "mai":
		return 5
	case "juin":
		return 6
	case "juil":
		return 7
	case "aout":
		return 8
	case "sept":
		return 9
	case "oct":
		return 10
	case "nov":
		return 11
	case "dec":
		return 12
	}
	return 0
}

// spelledNumber is the number in words that opens the line, and the first term after it. The number is 0 if
// the line does not open with one. It reads at most five words.
func (r numberReader) spelledNumber() (n uint32, to int) {
	for to < len(r.Terms) && to < 5 {
		t := r.Terms[to]
		if t.Typed == "et" && to > 0 {
			to++
			continue
		}
		v := numeral(t.Typed)
		switch {
		case v == 0:
			return n, to
		case v == 100 && n > 0:
			n *= 100
		case v == 20 && n%100 == 4:
			n += 76 // quatre-vingt
		default:
			n += v
		}
		to++
	}
	return n, to
}

// numeral is the number that one French word stands for, or 0.
func numeral(word string) uint32 {
	units := [...]string{"un", "deux", "trois", "quatre", "cinq", "six", "sept", "huit", "neuf", "dix", "onze", "douze", "treize", "quatorze", "quinze", "seize"}
	for i, group := range units {
		if word == group {
			return uint32(i + 1)
		}
	}
	switch word {
	case "vingt", "vingts":
		return 20
	case "trente":
		return 30
	case "quarante":
		return 40
	case "cinquante":
		return 50
	case "soixante":
		return 60
	case "cent", "cents":
		return 100
	}
	return 0
}

// IsRep reports whether the word after a number is its repetition index: "bis" and the like, or a single letter. A
// letter that also shortens words is one only if no space separates it from the number, or a kind of street follows. A letter with digits
// right after it names a building: 15C43. One that opens initials may belong to the street: H.L.M. du Patus.
func (q *Question) IsRep(i int) bool {
	t := q.Terms[i]
	return isRepWord(t.Typed) || q.isLoneLetter(i) && !q.opensInitials(i) && i != q.Unfinished && (t.Glued || !isShortening(t.Typed) || q.repEnd(i) > i+1 || q.leadsToWholeType(i))
}

// IsLatinRep reports whether a repetition index is a Latin word.
func IsLatinRep(rep string) bool { return isRepWord(rep) }

// isRepWord reports whether a word is a Latin repetition index.
func isRepWord(word string) bool {
	switch word {
	case "bis", "ter", "quater", "quinquies", "sexies", "septies", "octies":
		return true
	}
	return false
}

// mayBeLetterRep reports whether a letter that also shortens words, opens initials, or may still grow into a word, may be a repetition
// index. Only the numbers of the street can tell. The unfinished beginning of "bis" and the like may be one, too.
func (r numberReader) mayBeLetterRep(i int) bool {
	return r.isLoneLetter(i) && !r.IsRep(i) || i == r.Unfinished && beginsRepWord(r.Terms[i].Typed)
}

// beginsRepWord reports whether letters begin a Latin repetition index.
func beginsRepWord(letters string) bool {
	for _, word := range [...]string{"bis", "ter", "quater", "quinquies", "sexies", "septies", "octies"} {
		if len(letters) > 1 && strings.HasPrefix(word, letters) {
			return true
		}
	}
	return false
}

// isLoneLetter reports whether a term is a single letter with nothing attached after it. The letter "a" between two
// numbers joins them (4 à 6) and does not count.
func (q *Question) isLoneLetter(i int) bool {
	t := q.Terms[i]
	if !isLetter(t) || t.Before&(text.Break|text.Open) != 0 {
		return false
	}
	isLast := i+1 == len(q.Terms)
	return isLast || !q.Terms[i+1].Glued && (t.Typed != "a" || t.Glued || !q.Terms[i+1].Digits)
}

// leadsToWholeType reports whether a kind of street that is written to its end follows a letter which does not shorten one itself.
func (q *Question) leadsToWholeType(i int) bool {
	next := i + 1
	return q.Terms[i].Typed != "r" && next < len(q.Terms) && next != q.Unfinished && len(q.Terms[next].Typed) > 1 && q.IsStreetType(next)
}

// opensInitials reports whether two single letters follow a letter.
func (q *Question) opensInitials(i int) bool {
	return i+2 < len(q.Terms) && i+2 != q.Unfinished && isLetter(q.Terms[i+1]) && isLetter(q.Terms[i+2])
}

// isShortening reports whether a letter is also written for a word: d', l', r. for rue, n° and s/ for sur.
func isShortening(letter string) bool {
	switch letter {
	case "d", "l", "r", "n", "s":
		return true
	}
	return false
}

// HouseNumber finds the house number of a street whose words stand at name. The set taken holds all terms that
// name the street, its commune or another place; they are not read as numbers.
// The last free number before the street is chosen, then the first free one after it. A number that a complement
// owns is chosen last, and is ambiguous, since the word of the complement may be there by mistake.
func (q *Question) HouseNumber(name, taken Mask) HouseNumber {
	first, last := len(q.Terms), -1
	if name != 0 {
		first, last = name.First(), name.Last()
	}
	var before, owned, behind *numberGroup
	for i := range q.numberGroups {
		group := &q.numberGroups[i]
		switch {
		case group.mask()&taken != 0 || group.inParens && len(q.numberGroups) > 1:
		case group.from >= first && behind == nil && group.from > last && !group.isOwned:
			behind = group
		case group.from >= first || q.isTiedToType(group.from):
		case group.isOwned:
			owned = group
		default:
			before = group
		}
	}
	choose := numberChooser{q}
	switch {
	case before != nil:
		return choose.leading(before, first)
	case behind != nil:
		return choose.trailing(behind, last)
	case owned != nil && choose.isPlainID(owned):
		n := choose.houseNumberOf(owned)
		n.IsAmbiguous = true
		return n
	}
	return HouseNumber{}
}

// NameNumbers are the numbers that belong to the name of a street for the kind and the links before them, without an unfinished one.
func (q *Question) NameNumbers() (out Mask) {
	for i := range q.Terms {
		if q.digits.Has(i) && i != q.Unfinished && q.isTiedToType(i) {
			out |= Bit(i)
		}
	}
	return out
}

// isTiedToType reports whether only links stand between a kind of street and a number, which then belongs to the name of a street:
// chemin des 4 Roues.
func (q *Question) isTiedToType(number int) bool {
	i := number
	for i > 0 && q.IsLink(i-1) && q.Terms[i].Before&(text.Break|text.Open|text.Close) == 0 {
		i--
	}
	return i > 0 && i < number && q.IsStreetType(i-1) && q.Terms[i].Before&(text.Break|text.Open|text.Close) == 0
}

// numberChooser reads number groups as the house number of one street.
type numberChooser struct{ *Question }

// isPlainID reports whether a number that a complement owns may be a house number after all: it consists of digits,
// and no letter is attached before them.
func (c numberChooser) isPlainID(group *numberGroup) bool {
	return c.Terms[group.from].Digits && !(group.from > 0 && c.Terms[group.from].Glued)
}

// leading reads the number before a street. Several numbers that open the line form a list; a number that was
// typed twice counts once. A number further in is ambiguous if other words separate it from the street.
func (c numberChooser) leading(group *numberGroup, first int) HouseNumber {
	n := c.houseNumberOf(group)
	if !group.opens {
		n.IsAmbiguous = c.isApart(group, first)
		return n
	}
	for i := range c.numberGroups {
		o := &c.numberGroups[i]
		if o == group || !o.opens || o.isOwned || o.from > group.from {
			continue
		}
		isTwice := false
		for _, choice := range o.choices {
			isTwice = isTwice || choice.Number == group.choices[0].Number
		}
		n.At |= o.mask()
		if !isTwice {
			n.prepend(o.choices)
		} else if len(o.choices) > 1 {
			n.IsList = true
		}
	}
	return n
}

// isApart reports whether words that are neither a complement nor links stand between a number and its street.
func (c numberChooser) isApart(group *numberGroup, first int) bool {
	between := Span(group.to, first) &^ c.Complement &^ c.InParens
	for i := range c.Terms {
		if between.Has(i) && !c.IsLink(i) && len(c.Terms[i].Typed) > 1 {
			return true
		}
	}
	return false
}

// trailing reads a number after a street. It is ambiguous if other words separate it from the street, because they
// may own it.
func (c numberChooser) trailing(group *numberGroup, last int) HouseNumber {
	n := c.houseNumberOf(group)
	between := Span(last+1, group.from)
	for i := range c.Terms {
		if between.Has(i) && !c.IsLink(i) {
			n.IsAmbiguous = true
		}
	}
	return n
}

// houseNumberOf makes a house number of one group.
func (c numberChooser) houseNumberOf(group *numberGroup) HouseNumber {
	n := HouseNumber{At: group.mask(), IsList: len(group.choices) > 1}
	n.Count = copy(n.Choices[:], group.choices)
	return n
}

// prepend puts choices before those of a house number. Those that exceed maxChoices are dropped from the end.
func (n *HouseNumber) prepend(choices []Choice) {
	all := append(append(make([]Choice, 0, 2*maxChoices), choices...), n.Choices[:n.Count]...)
	n.Count = copy(n.Choices[:], all)
	n.IsList = true
}

// OpenNumbers calls yield with each number that may be a complement's or the house's: one that a letter owns or that stands in
// parentheses, except for numbers at terms of the house number. One that a word gives to a part of a building is not open. It
// stops when yield answers false.
func (q *Question) OpenNumbers(house Mask, yield func(uint32) bool) {
	for i := range q.numberGroups {
		group := &q.numberGroups[i]
		if group.mask()&(house|q.Given) != 0 || !group.isOwned && !group.inParens {
			continue
		}
		for _, c := range group.choices {
			if !yield(c.Number) {
				return
			}
		}
	}
}
