package text

// Term is a word as the index knows it: abbreviations written out, ordinals as plain numbers.
type Term struct {
	Text   string
	Typed  string // the word it came from, folded
	Start  int    // in characters of the text
	End    int
	Digits bool   // typed in digits
	Tail   string // what made a typed number an ordinal
	Glued  bool   // nothing stood between this word and the one before
	Elided bool   // an apostrophe follows
	Part   bool   // a further term of the word before
	Before Sign   // the signs between the word before and this one
}

// Terms are the terms of a text, in its order. The same function reads the base and the questions.
func Terms(s string) []Term {
	words := Words(s)
	terms := make([]Term, 0, len(words)+2)
	for i := range words {
		terms = appendTerms(terms, words, i)
	}
	return terms
}

func appendTerms(terms []Term, words []Word, i int) []Term {
	w := words[i]
	first, second := expand(words, i)
	if first == "" {
		return terms
	}
	if first == "route" && second != "" && len(terms) > 0 && terms[len(terms)-1].Text == "route" {
		first, second = second, ""
	}
	t := Term{Text: first, Typed: w.Text, Start: w.Start, End: w.End, Digits: w.Number(), Tail: w.Tail,
		Glued: w.Glued, Elided: w.Elided, Before: w.Before}
	terms = append(terms, t)
	if second != "" {
		t.Text, t.Part, t.Before = second, true, 0
		terms = append(terms, t)
	}
	return terms
}

// expand is what the word at i stands for: one term, two, or none.
func expand(words []Word, i int) (first, second string) {
	w := words[i].Text
	if words[i].Number() {
		return trimZeros(w), ""
	}
	numbered := i+1 < len(words) && words[i+1].Number() && len(words[i+1].Text) < 5 && !(words[i].Glued && i > 0 && words[i-1].Number())
	if numbered {
		if first, second, ok := expandNumbered(w, i == 0 && i+2 < len(words)); ok {
			return first, second
		}
	}
	if w == "rd" && i+1 < len(words) && (words[i+1].Text == "pt" || words[i+1].Text == "point") {
		return "rond", ""
	}
	if w == "pt" && i > 0 && (words[i-1].Text == "rd" || words[i-1].Text == "rond") {
		return "point", ""
	}
	isSuffix := i > 1 && words[i-1].Glued && words[i-2].Number() // 12a imp
	if i > 0 && !isSuffix && ClassOf(words[i-1].Text) == Link && (shortWay(w) != "" || w == "cap") {
		return w, ""
	}
	return short(w)
}

// expandNumbered reads a word before a number: roads of a class, and the sign of a house number, which says nothing.
func expandNumbered(w string, leads bool) (first, second string, ok bool) {
	switch w {
	case "no", "num", "numero":
		return "", "", true
	case "n":
		if leads {
			return "", "", true
		}
		return "route", "nationale", true
	case "rn":
		return "route", "nationale", true
	case "d", "rd":
		return "route", "departementale", true
	case "vc":
		return "voie", "communale", true
	case "cr":
		return "chemin", "rural", true
	}
	return "", "", false
}

func trimZeros(digits string) string {
	for len(digits) > 1 && digits[0] == '0' && len(digits) != 5 {
		digits = digits[1:]
	}
	return digits
}
