package parse

import (
	"strings"

	"lieudit/queries/address/text"
)

// postalReader finds the parts that serve only the post: post boxes, CEDEX, the country.
type postalReader struct{ *Question }

// readPostal finds the parts that belong to an address on paper but not to the base: CEDEX, post boxes, the country. Their
// numbers are not postcodes, so a postcode that was guessed from one of them is withdrawn.
func (r postalReader) readPostal() {
	for i := range r.Terms {
		if to, digits := r.boxWords(i); to > i {
			r.Postal |= Span(i, to) | r.idBehind(to-1, digits)
		}
		switch r.Terms[i].Typed {
		case "cedex":
			r.HasCedex = true
			r.Postal |= Bit(i) | r.idBehind(i, 2)
		case "france":
			if i == len(r.Terms)-1 && i > 0 && text.ClassOf(r.Terms[i-1].Text) != text.StopWord && len(r.Terms[i-1].Typed) > 2 {
				r.Postal |= Bit(i)
				if r.Terms[i-1].Typed == "metropolitan" {
					r.Postal |= Bit(i - 1)
				}
			} else if i+1 < len(r.Terms) && r.Terms[i+1].Typed == "metropolitaine" && r.Terms[i].Before&text.Break != 0 {
				r.Postal |= Bit(i) | Bit(i+1)
			}
		}
	}
	r.CodeSign = r.wordsBeforePostcode()
	r.Postal = (r.Postal | r.CodeSign) &^ r.Postcode.At
	r.Postcode.ShortAt &^= r.Postal
	if r.Postcode.ShortAt == 0 {
		r.Postcode.Short = 0
	}
	if r.Postcode.PrefixAt&r.Postal != 0 {
		r.Postcode.PrefixAt, r.Postcode.From, r.Postcode.To = 0, 0, 0
	}
}

// wordsBeforePostcode are the words right before the postcode that only announce it: CP, code postal.
func (r postalReader) wordsBeforePostcode() Mask {
	if r.Postcode.At == 0 {
		return 0
	}
	switch at := r.Postcode.At.First(); {
	case at > 0 && r.Terms[at-1].Typed == "cp":
		return Bit(at - 1)
	case at > 1 && r.Terms[at-1].Typed == "postal" && r.Terms[at-2].Typed == "code":
		return Bit(at-1) | Bit(at-2)
	}
	return 0
}

// boxDigits is the most digits that the number of a post box has.
const boxDigits = 5

// boxWords are the terms [i, to) that stand before the number of a post box, and the most digits that this number has: BP, TSA No,
// case postale, B.P. N. There are none if to is i. CP also means a postcode, so its box has three digits, unless a postcode
// stands elsewhere.
func (r postalReader) boxWords(i int) (to, digits int) {
	to, digits = i+1, boxDigits
	switch r.Terms[i].Typed {
	case "bp", "cs", "tsa", "cidex":
	case "cp":
		if digits = 3; r.Postcode.Code != 0 {
			digits = boxDigits
		}
	case "boite", "bte", "case":
		if !r.isTyped(to, "postale") {
			return i, 0
		}
		to++
	default:
		return r.spelledBox(i)
	}
	return r.behindNumberSign(to), digits
}

// spelledBox is boxWords for letters apart, as of B.P. They need a number.
func (r postalReader) spelledBox(i int) (to, digits int) {
	for _, letters := range [...]string{"bp", "cs", "tsa"} {
		to = i
		for to < len(r.Terms) && to-i < len(letters) && r.isTyped(to, letters[to-i:to-i+1]) {
			to++
		}
		if to-i != len(letters) {
			continue
		}
		if to = r.behindNumberSign(to); to < len(r.Terms) && r.Terms[to].Digits {
			return to, boxDigits
		}
	}
	return i, 0
}

// behindNumberSign is the first term from i on that is not the sign of a number (N, No, numéro).
func (r postalReader) behindNumberSign(i int) int {
	for r.isTyped(i, "n") || r.isTyped(i, "no") || r.isTyped(i, "num") || r.isTyped(i, "numero") {
		i++
	}
	return i
}

// isTyped reports whether there is a term i that was typed as a word.
func (r postalReader) isTyped(i int, word string) bool {
	return i < len(r.Terms) && r.Terms[i].Typed == word
}

// longestBoxWords is the most terms that stand before the number of a post box: T.S.A. N°.
const longestBoxWords = 5

// isBoxNumber reports whether term i is the number of a post box and not a postcode.
func (r postalReader) isBoxNumber(i int) bool {
	for from := max(0, i-longestBoxWords); from < i; from++ {
		if to, _ := r.boxWords(from); to == i && !r.isTyped(from, "cp") {
			return true
		}
	}
	return false
}

// idBehind is the number that follows term i and has at most the given number of digits. It is empty
// if there is none.
func (r postalReader) idBehind(i, digits int) Mask {
	if j := i + 1; j < len(r.Terms) && r.Terms[j].Digits && len(r.Terms[j].Typed) <= digits && !r.Postcode.At.Has(j) {
		return Bit(j)
	}
	return 0
}

// isPartWord reports whether a word names a part of a building. The numbers and letters after such a word belong to
// it, and are not house numbers.
func isPartWord(word string) bool {
	switch word {
	case "bat", "batiment", "batiments", "batim", "bt", "apt", "appt", "app", "appart", "appartement", "appartements", "porte", "pte",
		"esc", "escalier", "hall", "etage", "etg", "lot", "cellule", "cel", "local", "box", "cage", "bloc", "aile", "studio", "villa",
		"pavillon", "logement", "log", "niveau", "bal", "parking", "garage", "bureau", "entree", "ilot", "maison", "immeuble", "imm",
		"residence", "res", "chalet", "tour", "secteur", "stand", "magasin", "chambre", "plot", "bungalow", "mobilhome", "entrepot", "hangar",
		"atelier", "module", "boutique", "salle", "unite", "depot":
		return true
	}
	return false
}

// BeginsComplement reports whether letters begin a word that names a part of a building, or are one.
func BeginsComplement(typed string) bool {
	for _, word := range [...]string{"batiment", "appartement", "appt", "apt", "porte", "escalier", "hall", "etage", "etg", "lot", "cellule", "local", "box", "cage",
		"bloc", "aile", "studio", "villa", "pavillon", "logement", "niveau", "parking", "garage", "bureau", "entree", "ilot", "maison", "immeuble", "residence",
		"chalet", "tour", "chambre", "entrepot", "hangar", "atelier", "module", "boutique", "salle", "centre", "chez", "rez", "rdc"} {
		if strings.HasPrefix(word, typed) {
			return true
		}
	}
	return false
}

// IsPhraseWord reports whether a word begins a phrase that may name a residence, a company or a person next to the
// street.
func IsPhraseWord(word string) bool {
	switch word {
	case "residence", "res", "resid", "immeuble", "imm", "chez", "villa", "hlm", "copropriete", "centre", "galerie", "ets", "societe",
		"sarl", "sas", "eurl", "sci", "cabinet", "mairie", "tour", "batiment", "bat", "clos", "domaine", "lotissement", "lot", "parc",
		"camping", "ecole", "pavillon", "rdc", "tel", "zac", "zup", "espace", "technopole", "usine", "foyer", "college", "lycee":
		return true
	}
	return false
}

// complementReader finds the parts of a building and the names that may be those of one.
type complementReader struct{ *Question }

// readComplements finds the words that name a part of a building, with the numbers and letters they own. It also
// finds the phrases that may name a building. After a link such a word belongs to a street: rue du Pavillon.
func (r complementReader) readComplements() {
	for i := range r.Terms {
		t := r.Terms[i]
		if t.Part || (r.Postal | r.Postcode.At).Has(i) {
			continue
		}
		isCounted := isFloor(t.Typed) && r.hasFloorNumberBefore(i) || r.ordinalBefore(i) != 0
		if owned := r.idBehindWord(i + 1); isPartWord(t.Typed) && owned != 0 && !isCounted && (i == 0 || !r.IsLink(i-1)) && !r.mayNameStreet(i) {
			r.Complement |= Bit(i) | owned
			r.Given |= owned
		}
		if floor := r.ordinalBefore(i); floor != 0 {
			r.Complement |= Bit(i) | floor
			r.floors |= floor
		}
		if isFloor(t.Typed) && i > 0 && (r.Terms[i-1].Digits || r.Terms[i-1].Typed == "premier" || r.Terms[i-1].Typed == "dernier") && r.isOrdinal(i-1) {
			r.Complement |= Bit(i) | Bit(i-1)
			r.floors |= Bit(i - 1)
		}
		r.Complement |= r.groundFloor(i)
		if r.isIDBehindNumber(i) || r.isIDInParens(i) {
			r.Complement |= Bit(i) | Bit(i+1)
		}
		if IsPhraseWord(t.Typed) && (i == 0 || !r.IsLink(i-1) && !text.IsQualifier(r.Terms[i-1].Text)) {
			r.Phrases |= r.phrase(i)
		}
	}
	r.readSides()
	r.Complement &^= r.Postal | r.Postcode.At
	r.Phrases &^= r.Complement
	if r.isStreetPhrase() {
		r.Phrases = 0
	}
}

// mayNameStreet reports whether a part of a building followed by a single letter may be the beginning of a street while the
// letter is unfinished: 12 villa g, résidence l. After the name of a street it names a part: 12 rue du Four villa g.
func (r complementReader) mayNameStreet(i int) bool {
	if i+1 != r.Unfinished || !isLetter(r.Terms[i+1]) {
		return false
	}
	before := Span(0, i)
	isNumbered := i > 0 && (r.Terms[i-1].Digits || isRepWord(r.Terms[i-1].Typed))
	return isNumbered || r.Distinctive(before) == 0 || r.IsStreetType(i) && !r.HasStreetType(before)
}

// isStreetPhrase reports whether the only phrase of a line must be its street. The phrase holds the only kind of
// street, nothing but a house number stands before it, and no number follows that could belong to another street.
func (r complementReader) isStreetPhrase() bool {
	if r.Phrases == 0 || r.HasStreetType(r.Words()&^r.Phrases) || !r.HasStreetType(Bit(r.Phrases.First())) {
		return false
	}
	for i := range r.Phrases.First() {
		if t := r.Terms[i]; !t.Digits && !isLetter(t) && !isRepWord(t.Typed) {
			return false
		}
	}
	return r.Digits()&^r.Postcode.At&Span(r.Phrases.First(), len(r.Terms)) == 0
}

// readSides finds the words that name a side of a part of a building: 3e étage gauche. A part word without a
// number takes the side itself as its name: porte droite.
func (r complementReader) readSides() {
	for i := 1; i < len(r.Terms); i++ {
		before := r.Terms[i-1]
		isPart := isPartWord(before.Typed) && (i == 1 || !r.IsLink(i-2))
		isCounted := before.Digits && before.Tail != "" // 2e gauche
		if isSide(r.Terms[i].Typed) && (r.Complement.Has(i-1) || isPart || isCounted) && r.Terms[i].Before&text.Open == 0 {
			r.Complement |= Bit(i) | Bit(i-1)
			if isCounted {
				r.floors |= Bit(i - 1)
			}
		}
	}
}

// isSide reports whether a word is a side of a building, written out or shortened.
func isSide(word string) bool {
	switch word {
	case "gauche", "droite", "face", "fond", "milieu", "gche", "dte":
		return true
	}
	return false
}

// isIDInParens reports whether parentheses hold only letters and digits in one word: (C2).
func (r complementReader) isIDInParens(i int) bool {
	if i+1 >= len(r.Terms) || !r.InParens.Has(i) || r.Terms[i].Before&text.Open == 0 || len(r.Terms[i].Typed) > 2 {
		return false
	}
	id := r.Terms[i+1]
	isEnd := i+2 == len(r.Terms) || r.Terms[i+2].Before&text.Close != 0
	return !r.Terms[i].Digits && id.Digits && id.Glued && len(id.Typed) <= 4 && isEnd
}

// isIDBehindNumber reports whether a letter and digits in one word with the number before them name a building: 12C7 route.
func (r complementReader) isIDBehindNumber(i int) bool {
	if i == 0 || i+1 >= len(r.Terms) || !r.Terms[i-1].Digits || r.Terms[i-1].Tail != "" || len(r.Terms[i-1].Typed) > 4 {
		return false
	}
	t, id := r.Terms[i], r.Terms[i+1]
	return t.Glued && isLetter(t) && t.Before&text.Join == 0 && id.Glued && id.Digits && id.Before == 0 && len(id.Typed) <= 4
}

// groundFloor are the terms from i on that name the ground floor: rdc, rez de chaussée. It is empty if they
// do not.
func (r complementReader) groundFloor(i int) Mask {
	if r.Terms[i].Typed == "rdc" {
		return Bit(i)
	}
	to := i + 1
	for to < len(r.Terms) && r.Terms[to].Typed == "de" {
		to++
	}
	if r.Terms[i].Typed == "rez" && to < len(r.Terms) && r.Terms[to].Text == "chaussee" {
		return Span(i, to+1)
	}
	return 0
}

// isFloor reports whether a word means a floor. The abbreviation "et" is also a link, so callers ask for an ordinal
// before it.
func isFloor(word string) bool { return word == "etage" || word == "etg" || word == "et" }

// hasFloorNumberBefore reports whether the floor at term i is numbered by the word before it, so that a number after it is another's.
// A bare number does so if the one after it precedes the street: Bât. B 3 étage 24 rue.
func (r complementReader) hasFloorNumberBefore(i int) bool {
	if i == 0 || !r.Terms[i-1].Digits {
		return false
	}
	return r.Terms[i-1].Tail != "" || i > 1 && i+1 < len(r.Terms) && r.Terms[i+1].Digits && r.isOrdinal(i-1) && r.leadsToType(i+1)
}

// ordinalBefore are the terms before "étage" that are an ordinal in two words: 12 ème étage.
func (r complementReader) ordinalBefore(i int) Mask {
	if i < 2 || r.Terms[i].Typed != "etage" && r.Terms[i].Typed != "etg" || !r.Terms[i-2].Digits || r.Terms[i-2].Tail != "" {
		return 0
	}
	switch r.Terms[i-1].Typed {
	case "er", "ere", "e", "eme", "ieme", "nd", "nde":
		return Bit(i-2) | Bit(i-1)
	}
	return 0
}

// isOrdinal reports whether term i numbers the floor after it: 1er, 3e, premier. A bare number does so before
// "étage", unless the floor has its own number after that word: Rue du 19 Mars 1962 étage 1. Before "et", which
// also joins numbers, a bare number does not.
func (r complementReader) isOrdinal(i int) bool {
	if r.Terms[i].Tail != "" || !r.Terms[i].Digits {
		return true
	}
	isNames := i == 0 || r.HasStreetType(Span(0, i)) // the number is the house's or ends the name of the street
	return r.Terms[i+1].Typed != "et" && (!isNames || i+2 >= len(r.Terms) || r.idBehindWord(i+2) == 0)
}

// idBehindWord are the terms from i on that number or letter the word before them: B2, 3, A. Several terms belong
// together only if no space separates them. A letter with an apostrophe (d', l') is an article, not a name.
func (r complementReader) idBehindWord(i int) (out Mask) {
	for i < len(r.Terms) && (r.Terms[i].Typed == "no" || r.Terms[i].Typed == "n") && i+1 < len(r.Terms) && r.Terms[i+1].Digits {
		i++
	}
	if i >= len(r.Terms) || r.Postcode.At.Has(i) || !r.isID(i) || r.Terms[i].Before&(text.Break|text.Open) != 0 {
		return 0
	}
	out = Bit(i)
	for i++; i < len(r.Terms) && r.Terms[i].Glued && r.isID(i) && !r.Postcode.At.Has(i); i++ {
		out |= Bit(i)
	}
	return out
}

// isID reports whether a term can be the name of a building: digits, or one letter.
func (r complementReader) isID(i int) bool {
	t := r.Terms[i]
	if t.Digits {
		return len(t.Typed) <= 4 && t.Tail == ""
	}
	return len(t.Typed) == 1 && !t.Elided
}

// phrase is a phrase word with up to five words after it. It ends at a number, at a sign that ends a part of the
// address, at a kind of street and at the postcode. The limit keeps a line without signs from being one phrase.
func (r complementReader) phrase(i int) Mask {
	out := Bit(i)
	for j := i + 1; j < len(r.Terms) && j <= i+5; j++ {
		t := r.Terms[j]
		if t.Before&(text.Break|text.Close) != 0 || t.Digits || r.Postcode.At.Has(j) || text.ClassOf(t.Text) == text.StreetType {
			break
		}
		out |= Bit(j)
	}
	return out
}
