package parse

import "lieudit/queries/address/text"

// readPostal finds what belongs to an address on paper and not to the base: CEDEX, post boxes, the country.
func (q *Question) readPostal() {
	for i := range q.Terms {
		switch q.Terms[i].Typed {
		case "cedex":
			q.HasCedex = true
			q.Postal |= Bit(i) | q.idBehind(i, 2)
		case "bp", "cs", "tsa", "cidex":
			q.Postal |= Bit(i) | q.idBehind(i, 5)
		case "boite":
			if i+1 < len(q.Terms) && q.Terms[i+1].Typed == "postale" {
				q.Postal |= Bit(i) | Bit(i+1) | q.idBehind(i+1, 5)
			}
		case "france":
			if i == len(q.Terms)-1 && i > 0 && text.ClassOf(q.Terms[i-1].Text) != text.Link && len(q.Terms[i-1].Typed) > 2 {
				q.Postal |= Bit(i)
			}
		}
	}
	q.Postal &^= q.Postcode.At
	q.Postcode.ShortAt &^= q.Postal
	if q.Postcode.ShortAt == 0 {
		q.Postcode.Short = 0
	}
	if q.Postcode.StemAt&q.Postal != 0 {
		q.Postcode.StemAt, q.Postcode.From, q.Postcode.To = 0, 0, 0
	}
}

// idBehind is the number behind a word that has one, of at most so many digits.
func (q *Question) idBehind(i, digits int) Mask {
	if j := i + 1; j < len(q.Terms) && q.Terms[j].Digits && len(q.Terms[j].Typed) <= digits && !q.Postcode.At.Has(j) {
		return Bit(j)
	}
	return 0
}

// isPartWord says whether a word names a part of a building and owns the numbers and letters behind it.
func isPartWord(word string) bool {
	switch word {
	case "bat", "batiment", "batiments", "batim", "bt", "apt", "appt", "app", "appart", "appartement", "appartements", "porte", "pte",
		"esc", "escalier", "hall", "etage", "etg", "lot", "cellule", "cel", "local", "box", "cage", "bloc", "aile", "studio", "villa",
		"pavillon", "logement", "log", "niveau", "bal", "parking", "garage", "bureau", "entree", "ilot", "maison", "immeuble", "imm",
		"residence", "res", "appart'", "chalet", "tour", "secteur", "stand", "magasin", "chambre", "plot", "bungalow", "mobilhome":
		return true
	}
	return false
}

// isPhraseWord says whether a word begins the name of a residence, a company or a person, which no street bears.
func isPhraseWord(word string) bool {
	switch word {
	case "residence", "res", "resid", "immeuble", "imm", "chez", "villa", "hlm", "copropriete", "centre", "galerie", "ets", "societe",
		"sarl", "sas", "eurl", "sci", "cabinet", "mairie", "tour", "batiment", "bat", "clos", "domaine", "lotissement", "lot", "parc",
		"camping", "ecole", "pavillon", "rdc", "tel":
		return true
	}
	return false
}

// readComplements finds the words that name a part of a building, with the numbers and letters they own, and the phrases
// that may be the name of a building. Behind a link such a word belongs to a street: rue du Pavillon.
func (q *Question) readComplements() {
	for i := range q.Terms {
		t := q.Terms[i]
		if t.Part || (q.Postal | q.Postcode.At).Has(i) {
			continue
		}
		isCounted := isFloor(t.Typed) && i > 0 && q.Terms[i-1].Digits && q.Terms[i-1].Tail != ""
		if owned := q.owned(i + 1); isPartWord(t.Typed) && owned != 0 && !isCounted && (i == 0 || !q.IsLink(i-1)) {
			q.Complement |= Bit(i) | owned
		}
		if isFloor(t.Typed) && i > 0 && (q.Terms[i-1].Digits || q.Terms[i-1].Typed == "premier" || q.Terms[i-1].Typed == "dernier") && q.isOrdinal(i-1) {
			q.Complement |= Bit(i - 1)
			q.Complement |= Bit(i)
		}
		if t.Typed == "rdc" {
			q.Complement |= Bit(i)
		}
		if isPhraseWord(t.Typed) && (i == 0 || !q.IsLink(i-1)) {
			q.Phrases |= q.phrase(i)
		}
	}
	q.Complement &^= q.Postal | q.Postcode.At
	q.Phrases &^= q.Complement
}

func isFloor(word string) bool { return word == "etage" || word == "etg" || word == "et" }

// isOrdinal says whether digits are an ordinal: 1er, 3e, 2eme. A bare number before "étage" is taken for one, too.
func (q *Question) isOrdinal(i int) bool {
	return q.Terms[i].Tail != "" || !q.Terms[i].Digits || q.Terms[i+1].Typed != "et" && (i > 0 || i+2 >= len(q.Terms) || q.owned(i+2) == 0)
}

// owned are the number and letters that belong to a word before them: B2, 3, A, 3 B where nothing stands between. Letters
// that only shorten words (d', l') are none.
func (q *Question) owned(i int) (out Mask) {
	for i < len(q.Terms) && (q.Terms[i].Typed == "no" || q.Terms[i].Typed == "n") && i+1 < len(q.Terms) && q.Terms[i+1].Digits {
		i++
	}
	if i >= len(q.Terms) || q.Postcode.At.Has(i) || !q.isID(i) || q.Terms[i].Before&(text.Break|text.Open) != 0 {
		return 0
	}
	out = Bit(i)
	for i++; i < len(q.Terms) && q.Terms[i].Glued && q.isID(i) && !q.Postcode.At.Has(i); i++ {
		out |= Bit(i)
	}
	return out
}

// isID says whether a term can be the name of a building: digits, or one letter.
func (q *Question) isID(i int) bool {
	t := q.Terms[i]
	if t.Digits {
		return len(t.Typed) <= 4 && t.Tail == ""
	}
	return len(t.Typed) == 1 && !t.Elided
}

// phrase is a word and those behind it up to a number, a sign that ends a part, a kind of street or the postcode.
func (q *Question) phrase(i int) Mask {
	out := Bit(i)
	for j := i + 1; j < len(q.Terms) && j <= i+5; j++ {
		t := q.Terms[j]
		if t.Before&(text.Break|text.Close) != 0 || t.Digits || q.Postcode.At.Has(j) || text.ClassOf(t.Text) == text.Way {
			break
		}
		out |= Bit(j)
	}
	return out
}
