package geocode

import (
	"strings"

	"lieudit/queries/address/parse"
	"lieudit/queries/address/search"
	"lieudit/queries/address/text"
)

// departmentOf reports whether a country is France as people write it, or the name or ISO code of one of its parts. It returns
// the department that the country names, or "" for all of France.
func departmentOf(country string) (department string, isFrench bool) {
	switch text.Fold(country) {
	case "", "fr", "fra", "france":
		return "", true
	case "gp", "guadeloupe":
		return "971", true
	case "mq", "martinique":
		return "972", true
	case "gf", "guyane":
		return "973", true
	case "re", "la reunion", "reunion":
		return "974", true
	case "pm", "saint pierre et miquelon":
		return "975", true
	case "yt", "mayotte":
		return "976", true
	case "bl", "saint barthelemy":
		return "977", true
	case "mf", "saint martin":
		return "978", true
	}
	return "", false
}

// IsFrenchCountry reports whether addresses of a country are in the BAN. An empty country is France.
func IsFrenchCountry(country string) bool {
	_, isFrench := departmentOf(country)
	return isFrench
}

// codeOf returns the postcode that was read in a text, or "".
func codeOf(q *parse.Question) string {
	if q.Postcode.Code == 0 {
		return ""
	}
	return search.PostcodeText(q.Postcode.Code)
}

// digitsOf returns a postcode without blanks, punctuation and the letters of the country. A postcode of four digits has lost
// its leading zero in a spreadsheet.
func digitsOf(postcode string) string {
	code := strings.Map(func(r rune) rune {
		if r == ' ' || r == '-' || r == '.' || r == '\u00a0' {
			return -1
		}
		return r
	}, strings.ToUpper(postcode))
	code = strings.TrimPrefix(strings.TrimPrefix(code, "FR"), "F")
	if len(code) == 4 && parse.Number(code) != 0 {
		return "0" + code
	}
	return code
}
