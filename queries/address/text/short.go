package text

import "strings"

// short writes an abbreviation out. The list is that of the postal standard for address lines (AFNOR NF Z 10-011) and
// of the ways people shorten by themselves; a word that is none stands for itself.
func short(w string) (first, second string) {
	if len(w) > 10 {
		return w, ""
	}
	if first = shortWay(w); first != "" {
		return first, ""
	}
	if first = shortTitle(w); first != "" {
		return first, ""
	}
	if first = numeral(w); first != "" {
		return first, ""
	}
	return shortPair(w)
}

// shortWay writes out kinds of streets.
func shortWay(w string) string {
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
	return shortPlace(w)
}

// shortPlace writes out the rarer kinds of streets and places.
func shortPlace(w string) string {
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

// shortTitle writes out what precedes names of people and places.
func shortTitle(w string) string {
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
	return shortQuality(w)
}

// shortQuality writes out what tells two like names apart.
func shortQuality(w string) string {
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

// numeral writes the numbers that street names spell out in digits.
func numeral(w string) string {
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

// IsTitle says whether a term is a title, which people write before a name or leave away.
func IsTitle(term string) bool {
	switch term {
	case "general", "marechal", "colonel", "commandant", "capitaine", "lieutenant", "sergent", "president", "docteur", "professeur",
		"monseigneur", "madame", "mademoiselle", "abbe", "amiral", "maitre", "pere", "soeur", "frere", "cure", "comte", "duc", "roi", "adjudant", "chanoine":
		return true
	}
	return false
}

// IsQualifier says whether a term before a name makes it another one: rue du Pont, rue du Vieux Pont.
func IsQualifier(term string) bool {
	switch term {
	case "grand", "grande", "grands", "grandes", "petit", "petite", "petits", "petites", "haut", "haute", "hauts", "hautes", "bas", "basse",
		"vieux", "vieille", "vieil", "nouveau", "nouvelle", "nouvel", "ancien", "ancienne", "beau", "belle", "long", "longue", "gros", "grosse",
		"saint", "sainte", "rond", "neuf", "neuve", "bon", "bonne":
		return true
	}
	return false
}

// BegunNumeral is the number whose name begins with what was typed, as the terms of the base write it.
func BegunNumeral(typed string) (digits string, ok bool) {
	if len(typed) < 3 {
		return "", false
	}
	for _, name := range [...]string{"deux", "trois", "quatre", "cinq", "sept", "huit", "neuf", "onze", "douze", "quatorze", "quinze", "premier"} {
		if strings.HasPrefix(name, typed) {
			return numeral(name), true
		}
	}
	return "", false
}

// shortPair writes out what stands for two words.
func shortPair(w string) (first, second string) {
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

// Class tells how much a term says about a place.
type Class uint8

const (
	// Plain terms name the place.
	Plain Class = iota
	// Way terms name its kind: rue, chemin, place.
	Way
	// Link terms join the others and may be missing: de, la, lieu-dit.
	Link
)

// ClassOf is the class of a term.
func ClassOf(term string) Class {
	switch term {
	case "de", "du", "des", "d", "la", "le", "les", "l", "et", "a", "au", "aux", "en", "sur", "sous", "lieu", "dit":
		return Link
	case "rue", "avenue", "boulevard", "chemin", "route", "place", "impasse", "allee", "square", "cours", "faubourg",
		"lotissement", "residence", "quartier", "passage", "esplanade", "promenade", "hameau", "village", "ruelle",
		"sentier", "traverse", "montee", "domaine", "chaussee", "immeuble", "quai", "voie", "cite", "parc", "zone", "clos", "cour", "venelle",
		"sente", "villa", "carrefour", "corniche", "levee", "mail", "parvis", "galerie", "rampe", "rocade":
		return Way
	}
	return Plain
}
