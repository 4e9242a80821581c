package parse

import "lieudit/queries/address/text"

// maxChoices bounds the numbers of a list that are tried.
const maxChoices = 4

// Choice is one number of an address as it was typed.
type Choice struct {
	Number uint32
	Rep    string // the repetition index, as typed; empty: none
	RepAt  Mask
	Letter Mask // a letter that is a repetition index only where the street has it
}

// HouseNumber is the house number as one street reads it: what is part of its name is no number.
type HouseNumber struct {
	At          Mask // its terms, with those of its repetition index and of the rest of a list
	Choices     [maxChoices]Choice
	Count       int  // of the choices; they are tried in their order
	IsList      bool // several numbers were typed
	IsAmbiguous bool // the number may as well belong to a complement
}

// IsTyped says whether there is a number.
func (n *HouseNumber) IsTyped() bool { return n.Count > 0 }

// numberGroup is one number, or several that a sign makes one: 13/15, 4 à 6, 3-avr.
type numberGroup struct {
	from, to int // terms
	choices  []Choice
	isOwned  bool // by a word of a complement, or a letter before it
	inParens bool
	opens    bool // nothing but such numbers stands before it
}

func (u *numberGroup) mask() Mask { return Span(u.from, u.to) }

// readNumbers finds all that can be a house number, whichever street is meant.
func (q *Question) readNumbers() {
	opens := true
	for i := 0; i < len(q.Terms); {
		u, ok := q.readNumberGroup(i)
		if !ok {
			opens = opens && (q.Terms[i].Part || q.InParens.Has(i))
			i++
			continue
		}
		u.opens = opens && !u.inParens
		opens = opens && (!u.isOwned || u.inParens)
		q.addNumberGroup(u)
		i = u.to
	}
}

// addNumberGroup adds a number. One that a comma or the word "et" joins to the one before goes on with it.
func (q *Question) addNumberGroup(u numberGroup) {
	if n := len(q.numberGroups); n > 0 {
		last := &q.numberGroups[n-1]
		isNext := last.to == u.from && q.Terms[u.from].Before&text.Join != 0 ||
			last.to == u.from && last.opens && q.Terms[u.from].Before&text.Break != 0 ||
			last.to+1 == u.from && isListWord(q.Terms[last.to].Typed)
		if isNext && last.isOwned == u.isOwned && last.inParens == u.inParens && len(last.choices) < maxChoices {
			last.to, last.choices = u.to, append(last.choices, u.choices...)
			return
		}
	}
	q.numberGroups = append(q.numberGroups, u)
}

func isListWord(word string) bool { return word == "a" || word == "et" || word == "ou" || word == "au" }

// readNumberGroup reads a number with its repetition index from a term on.
func (q *Question) readNumberGroup(i int) (u numberGroup, ok bool) {
	t := q.Terms[i]
	if (q.Postal | q.Postcode.At).Has(i) {
		return u, false
	}
	if !t.Digits {
		return q.readOther(i)
	}
	if len(t.Typed) > 4 || t.Tail != "" && t.Tail != "e" || q.isRoadNumber(i) {
		return u, false
	}
	c := Choice{Number: Number(t.Typed), Rep: t.Tail}
	u = numberGroup{from: i, to: i + 1, inParens: q.InParens.Has(i)}
	u.isOwned = q.Complement.Has(i) || i > 0 && t.Glued && isLetter(q.Terms[i-1]) && !q.isRepBehind(i-1)
	if u.to < len(q.Terms) && c.Rep == "" && !q.Complement.Has(u.to) {
		switch {
		case q.IsRep(u.to):
			c.Rep, c.RepAt = q.Terms[u.to].Typed, Bit(u.to)
			q.Reps |= c.RepAt
			u.to++
		case q.mayBeRep(u.to):
			c.Letter = Bit(u.to)
		}
	}
	u.choices = append(make([]Choice, 0, 2), c)
	return q.readDate(u), true
}

// isRepBehind says whether a letter belongs to the number before it: 2A 2.
func (q *Question) isRepBehind(i int) bool { return i > 0 && q.Terms[i-1].Digits && !q.Terms[i].Glued }

func isLetter(t text.Term) bool { return len(t.Typed) == 1 && !t.Digits && !t.Elided }

// readOther reads a number that is written in letters before a kind of street, and a date that opens with its month, as a
// spreadsheet writes 4/13: avr-13.
func (q *Question) readOther(i int) (u numberGroup, ok bool) {
	t := q.Terms[i]
	if m := month(t.Typed); m > 0 && i+1 < len(q.Terms) && q.Terms[i+1].Digits && q.Terms[i+1].Before&text.Join != 0 && len(q.Terms[i+1].Typed) <= 2 {
		return numberGroup{from: i, to: i + 2, choices: []Choice{{Number: m}, {Number: Number(q.Terms[i+1].Typed)}}}, true
	}
	if i == 0 {
		if u, ok := q.readSpelled(); ok {
			return u, true
		}
	}
	return u, false
}

// readSpelled reads a number in letters that opens the line before a kind of street: vingt-quatre bis rue.
func (q *Question) readSpelled() (u numberGroup, ok bool) {
	n, to := q.spelledNumber()
	c := Choice{Number: n}
	if n > 0 && to < len(q.Terms) && q.IsRep(to) {
		c.Rep, c.RepAt = q.Terms[to].Typed, Bit(to)
		to++
	}
	if n == 0 || to >= len(q.Terms) || text.ClassOf(q.Terms[to].Text) != text.StreetType {
		return u, false
	}
	q.Reps |= c.RepAt
	return numberGroup{from: 0, to: to, choices: []Choice{c}}, true
}

// readDate takes a month behind a number for what a spreadsheet made of the second number: 3-avr is 3/4.
func (q *Question) readDate(u numberGroup) numberGroup {
	if i := u.to; i < len(q.Terms) && q.Terms[i].Before&text.Join != 0 {
		if m := month(q.Terms[i].Typed); m > 0 {
			u.to++
			u.choices = append(u.choices, Choice{Number: m})
		}
	}
	return u
}

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

// spelledNumber is the number in letters that opens the line, and the term behind it; 0 is none.
func (q *Question) spelledNumber() (n uint32, to int) {
	for to < len(q.Terms) && to < 5 {
		t := q.Terms[to]
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
		case v == 20 && n == 4:
			n = 80
		default:
			n += v
		}
		to++
	}
	return n, to
}

func numeral(word string) uint32 {
	units := [...]string{"un", "deux", "trois", "quatre", "cinq", "six", "sept", "huit", "neuf", "dix", "onze", "douze", "treize", "quatorze", "quinze", "seize"}
	for i, u := range units {
		if word == u {
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

// IsRep says whether a word after a number is its repetition index: one of those there are, or a letter by itself. The
// letters that also shorten words are one only where they stick to the number. A letter with digits behind it names a
// building: 15C43.
func (q *Question) IsRep(i int) bool {
	t := q.Terms[i]
	return isRepWord(t.Typed) || q.isLoneLetter(i) && (t.Glued || !isShortening(t.Typed))
}

func isRepWord(word string) bool {
	switch word {
	case "bis", "ter", "quater", "quinquies", "sexies", "septies", "octies":
		return true
	}
	return false
}

// mayBeRep says whether a letter that also shortens words can be a repetition index, if the street has it.
func (q *Question) mayBeRep(i int) bool {
	return q.isLoneLetter(i) && !q.Terms[i].Glued && isShortening(q.Terms[i].Typed)
}

// isLoneLetter says whether a term is a letter that goes on with no other. The one of "4 à 6" joins two numbers.
func (q *Question) isLoneLetter(i int) bool {
	t := q.Terms[i]
	if !isLetter(t) || t.Before&(text.Break|text.Open) != 0 {
		return false
	}
	isLast := i+1 == len(q.Terms)
	return isLast || !q.Terms[i+1].Glued && (t.Typed != "a" || t.Glued || !q.Terms[i+1].Digits)
}

// isShortening says whether a letter is also written for a word: d', l', r. for rue, n° and s/ for sur.
func isShortening(letter string) bool {
	switch letter {
	case "d", "l", "r", "n", "s":
		return true
	}
	return false
}

// HouseNumber finds the house number of a street whose words stand at name. taken are all the terms that name the street,
// its commune or another place. The number that stands next to the street is the house's; one behind the street is taken
// where none stands before it.
func (q *Question) HouseNumber(name, taken Mask) HouseNumber {
	first, last := len(q.Terms), -1
	if name != 0 {
		first, last = name.First(), name.Last()
	}
	var before, owned, behind *numberGroup
	for i := range q.numberGroups {
		u := &q.numberGroups[i]
		switch {
		case u.mask()&taken != 0 || u.inParens && len(q.numberGroups) > 1:
		case u.from >= first && behind == nil && u.from > last && !u.isOwned:
			behind = u
		case u.from >= first:
		case u.isOwned:
			owned = u
		default:
			before = u
		}
	}
	switch {
	case before != nil:
		return q.leading(before, first)
	case behind != nil:
		return q.trailing(behind, last)
	case owned != nil && q.isPlainID(owned):
		n := q.chosen(owned)
		n.IsAmbiguous = true
		return n
	}
	return HouseNumber{}
}

// isPlainID says whether what a complement owns could be a house number: digits without a letter before.
func (q *Question) isPlainID(u *numberGroup) bool {
	return q.Terms[u.from].Digits && !(u.from > 0 && q.Terms[u.from].Glued)
}

// leading reads the number before a street. Several that open the line are a list; a number that was typed twice is one.
func (q *Question) leading(u *numberGroup, first int) HouseNumber {
	n := q.chosen(u)
	if !u.opens {
		n.IsAmbiguous = q.isApart(u, first)
		return n
	}
	for i := range q.numberGroups {
		o := &q.numberGroups[i]
		if o == u || !o.opens || o.isOwned || o.from > u.from {
			continue
		}
		isTwice := false
		for _, c := range o.choices {
			isTwice = isTwice || c.Number == u.choices[0].Number
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

// isApart says whether words that are neither a complement nor links stand between a number and its street.
func (q *Question) isApart(u *numberGroup, first int) bool {
	between := Span(u.to, first) &^ q.Complement &^ q.InParens
	for i := range q.Terms {
		if between.Has(i) && !q.IsLink(i) && len(q.Terms[i].Typed) > 1 {
			return true
		}
	}
	return false
}

// trailing reads a number behind a street.
func (q *Question) trailing(u *numberGroup, last int) HouseNumber {
	n := q.chosen(u)
	between := Span(last+1, u.from)
	for i := range q.Terms {
		if between.Has(i) && !q.IsLink(i) {
			n.IsAmbiguous = true
		}
	}
	return n
}

func (q *Question) chosen(u *numberGroup) HouseNumber {
	n := HouseNumber{At: u.mask(), IsList: len(u.choices) > 1}
	n.Count = copy(n.Choices[:], u.choices)
	return n
}

// prepend puts numbers before those there are, as far as there is room.
func (n *HouseNumber) prepend(choices []Choice) {
	all := append(append(make([]Choice, 0, 2*maxChoices), choices...), n.Choices[:n.Count]...)
	n.Count = copy(n.Choices[:], all)
	n.IsList = true
}

// ComplementNumbers calls yield with each number that a complement owns, but those at terms of the house number.
func (q *Question) ComplementNumbers(house Mask, yield func(uint32) bool) {
	for i := range q.numberGroups {
		u := &q.numberGroups[i]
		if u.mask()&house != 0 || !u.isOwned && !u.inParens {
			continue
		}
		for _, c := range u.choices {
			if !yield(c.Number) {
				return
			}
		}
	}
}
