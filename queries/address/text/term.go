package text

import (
	"slices"
	"strings"
)

// Term is a word in the form of the index: abbreviations expanded, ordinals as plain numbers.
type Term struct {
	Text   string
	Typed  string // the word that it comes from, folded
	Start  int    // in characters of the text
	End    int
	Digits bool   // typed in digits
	Tail   string // the suffix that made a typed number an ordinal
	Glued  bool   // no character separates the word from the one before
	Elided bool   // an apostrophe follows
	Part   bool   // the second term of the same word
	Before Sign   // the signs between the word before and this one
}

// Terms returns the terms of a text in order. Names of the base and questions pass through it alike.
func Terms(s string) []Term {
	words := Words(s)
	terms := make([]Term, 0, len(words)+2)
	for i := range words {
		terms = appendTerms(terms, words, i)
	}
	return terms
}

// appendTerms appends the terms of the word at i. "route rn 7" has one route only.
func appendTerms(terms []Term, words []Word, i int) []Term {
	w := words[i]
	first, second := expandWord(words, i)
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

// expandWord expands the word at i into up to two terms.
func expandWord(words []Word, i int) (first, second string) {
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
	isSuffix := i > 1 && words[i-2].Number() && (words[i-1].Glued || words[i-1].Text == "a") // 12a imp, 12 A RTE
	if i > 0 && !isSuffix && ClassOf(words[i-1].Text) == StopWord && (expandStreetType(w) != "" || w == "cap") {
		return w, ""
	}
	return expandAbbreviation(w)
}

// expandNumbered expands a word before a number: the class of a road, or the sign of a house number, which has no term.
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

// trimZeros drops leading zeros, except from numbers of five digits, which may be postcodes.
func trimZeros(digits string) string {
	for len(digits) > 1 && digits[0] == '0' && len(digits) != 5 {
		digits = digits[1:]
	}
	return digits
}

// expandAbbreviation expands an abbreviation. The list is that of the postal standard for address lines (AFNOR NF Z
// 10-011) and of abbreviations that people use besides. Any other word is returned unchanged.
func expandAbbreviation(w string) (first, second string) {
	if len(w) > 10 {
		return w, ""
	}
	if first = expandStreetType(w); first != "" {
		return first, ""
	}
	if first = expandTitle(w); first != "" {
		return first, ""
	}
	if first = numeralDigits(w); first != "" {
		return first, ""
	}
	return expandPair(w)
}

// expandStreetType expands the abbreviation of a street type.
func expandStreetType(w string) string {
	switch w {
	case "r":
		return "rue"
	case "av", "ave", "aven":
		return "avenue"
	case "bd", "bld", "bvd", "blvd", "boul", "boulev":
		return "boulevard"
	case "ch", "che", "chem", "chm":
		return "chemin"
	case "rte", "rt":
		return "route"
	case "pl", "plc":
		return "place"
	case "imp":
		return "impasse"
	case "all", "allees":
		return "allee"
	case "sq":
		return "square"
	case "crs":
		return "cours"
	case "fg", "fbg", "faub":
		return "faubourg"
	}
	return expandRareStreetType(w)
}

// ShortenedType returns the kind of street that a word shortens if the word is not a kind itself and so cannot be the name: rte, chem.
// It is empty for any other word.
func ShortenedType(w string) string {
	switch w {
	case "rte", "imp", "chem", "chm", "boul", "boulev", "bld", "bvd", "blvd", "aven", "plc", "crs", "fbg", "faub", "trav", "qrt", "quart",
		"vge", "vlg", "vlge", "rlle", "mte", "resid", "psg":
		return expandStreetType(w)
	}
	return ""
}

// expandRareStreetType expands the abbreviation of a rarer street type or kind of place.
func expandRareStreetType(w string) string {
	switch w {
	case "lot", "lots":
		return "lotissement"
	case "res", "resid":
		return "residence"
	case "quar", "qu", "qua", "qrt", "quart":
		return "quartier"
	case "pas", "pass", "psg":
		return "passage"
	case "esp":
		return "esplanade"
	case "prom":
		return "promenade"
	case "ham":
		return "hameau"
	case "vlge", "vlg", "vge":
		return "village"
	case "rlle":
		return "ruelle"
	case "sen", "sent":
		return "sentier"
	case "tra", "trav":
		return "traverse"
	case "mte":
		return "montee"
	case "dom":
		return "domaine"
	case "chs":
		return "chaussee"
	case "imm":
		return "immeuble"
	}
	return ""
}

// expandTitle expands the abbreviation of a title before a name.
func expandTitle(w string) string {
	switch w {
	case "st":
		return "saint"
	case "ste":
		return "sainte"
	case "sts":
		return "saints"
	case "stes":
		return "saintes"
	case "gal", "gen":
		return "general"
	case "mal", "mar":
		return "marechal"
	case "col":
		return "colonel"
	case "cdt", "cmdt":
		return "commandant"
	case "cap", "cne":
		return "capitaine"
	case "lt":
		return "lieutenant"
	case "sgt":
		return "sergent"
	case "pdt", "pres", "prst":
		return "president"
	case "dr", "doct":
		return "docteur"
	case "pr", "prof":
		return "professeur"
	case "mgr":
		return "monseigneur"
	}
	return expandQualifier(w)
}

// expandQualifier expands the abbreviation of a word that distinguishes similar names.
func expandQualifier(w string) string {
	switch w {
	case "mme":
		return "madame"
	case "mlle":
		return "mademoiselle"
	case "gd":
		return "grand"
	case "gde":
		return "grande"
	case "pte":
		return "petite"
	case "vx":
		return "vieux"
	case "ht":
		return "haut"
	case "hte":
		return "haute"
	case "mt":
		return "mont"
	case "egl":
		return "eglise"
	case "s":
		return "sur"
	case "ss":
		return "sous"
	case "lez", "les":
		return "les"
	}
	return ""
}

// numeralDigits writes in digits a number that street names spell out.
func numeralDigits(w string) string {
	switch w {
	case "deux":
		return "2"
	case "trois":
		return "3"
	case "quatre":
		return "4"
	case "cinq":
		return "5"
	case "six":
		return "6"
	case "sept":
		return "7"
	case "huit":
		return "8"
	case "neuf":
		return "9"
	case "dix":
		return "10"
	case "onze":
		return "11"
	case "douze":
		return "12"
	case "quatorze":
		return "14"
	case "quinze":
		return "15"
	case "premier":
		return "1"
	}
	return ""
}

// IsTitle reports whether a term is a title, which people may leave out before a name.
func IsTitle(term string) bool {
	switch term {
	case "general", "marechal", "colonel", "commandant", "capitaine", "lieutenant", "sergent", "president", "docteur", "professeur",
		"monseigneur", "madame", "mademoiselle", "abbe", "amiral", "maitre", "pere", "soeur", "frere", "cure", "comte", "duc", "roi", "adjudant", "chanoine":
		return true
	}
	return false
}

// IsSettlement reports whether a kind of street is really that of a group of houses, whose name may be written without
// it: hameau, lotissement.
func IsSettlement(term string) bool {
	switch term {
	case "lotissement", "residence", "quartier", "hameau", "village", "domaine", "immeuble", "cite", "parc", "zone", "clos", "villa":
		return true
	}
	return false
}

// IsQualifier reports whether a term before a name makes it another name: rue du Pont, rue du Vieux Pont.
func IsQualifier(term string) bool {
	switch term {
	case "grand", "grande", "grands", "grandes", "petit", "petite", "petits", "petites", "haut", "haute", "hauts", "hautes", "bas", "basse",
		"vieux", "vieille", "vieil", "nouveau", "nouvelle", "nouvel", "ancien", "ancienne", "beau", "belle", "long", "longue", "gros", "grosse",
		"saint", "sainte", "rond", "neuf", "neuve", "bon", "bonne":
		return true
	}
	return false
}

// BegunTerms returns the terms of the abbreviations and numerals that the typed letters begin, if these terms are written with
// other letters: "ga" begins "gal", which stands for general, and "tro" begins "trois", which is 3. Letters that name a road before
// its number stand for its kind already.
func BegunTerms(typed string) (terms []string) {
	if typed == "" {
		return nil
	}
	add := func(term string) {
		if term != "" && !strings.HasPrefix(term, typed) && !slices.Contains(terms, term) {
			terms = append(terms, term)
		}
	}
	for _, w := range [...]string{
		"bld", "blvd", "bvd", "cdt", "cinq", "cmdt", "cne", "crs", "deux", "dix", "douze", "fbg", "gal", "gde", "hte", "huit", "lieudit", "mgr",
		"mlle", "mme", "neuf", "onze", "pdt", "premier", "prst", "psg", "pte", "qrt", "quatorze", "quatre", "quinze", "rdpt", "rlle", "rpt",
		"sept", "sgt", "six", "ste", "trois", "vge", "vlg", "vlge",
	} {
		if strings.HasPrefix(w, typed) && w != typed {
			first, _ := expandAbbreviation(w)
			add(first)
		}
	}
	if first, _, ok := expandNumbered(typed, false); ok && len(typed) > 1 {
		add(first)
	}
	return terms
}

// BeginsStopWord reports whether letters begin a stop word, or are one.
func BeginsStopWord(typed string) bool {
	for _, w := range [...]string{"de", "du", "des", "la", "le", "les", "et", "a", "au", "aux", "en", "sur", "sous", "lieu", "dit"} {
		if strings.HasPrefix(w, typed) {
			return true
		}
	}
	return false
}

// expandPair expands an abbreviation of two words.
func expandPair(w string) (first, second string) {
	switch w {
	case "nd":
		return "notre", "dame"
	case "ld", "lieudit":
		return "lieu", "dit"
	case "za", "zae":
		return "zone", "artisanale"
	case "zi":
		return "zone", "industrielle"
	case "rpt", "rdpt":
		return "rond", "point"
	case "hlm":
		return "hlm", ""
	}
	return w, ""
}

// Class is how much a term says about a place.
type Class uint8

const (
	// Content terms identify the place.
	Content Class = iota
	// StreetType terms are street types and kinds of places: rue, chemin, place.
	StreetType
	// StopWord terms are stop words, which may be missing: de, la, lieu-dit.
	StopWord
)

// ClassOf is the class of a term.
func ClassOf(term string) Class {
	switch term {
	case "de", "du", "des", "d", "la", "le", "les", "l", "et", "a", "au", "aux", "en", "sur", "sous", "lieu", "dit":
		return StopWord
	case "rue", "avenue", "boulevard", "chemin", "route", "place", "impasse", "allee", "square", "cours", "faubourg",
		"lotissement", "residence", "quartier", "passage", "esplanade", "promenade", "hameau", "village", "ruelle",
		"sentier", "traverse", "montee", "domaine", "chaussee", "immeuble", "quai", "voie", "cite", "parc", "zone", "clos", "cour", "venelle",
		"sente", "villa", "carrefour", "corniche", "levee", "mail", "parvis", "galerie", "rampe", "rocade":
		return StreetType
	}
	return Content
}
