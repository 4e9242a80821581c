package clean

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// dropSpaces drops every space of a text.
func dropSpaces(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || r == '\u200b' {
			return -1
		}
		return r
	}, s)
}

var (
	postcodePattern = regexp.MustCompile(`^(?:F(?:R|RANCE)?-?)?(\d{4,5})(?:[.,]0+)?(?:CEDEX\d*)?$`)
	inseePattern    = regexp.MustCompile(`^(\d{4,5}|2[AB]\d{3})(?:\.0+)?$`)
)

// Postcode reads a French postcode: 75001, 75 001, F-75001, 75001.0, 75001 CEDEX 08, and 1000 for 01000. Codes that belong to no
// department or territory are not ok, nor is a text with anything else in it.
func Postcode(s string) (code string, ok bool) {
	m := postcodePattern.FindStringSubmatch(strings.ToUpper(dropSpaces(s)))
	if m == nil {
		return "", false
	}
	code = padLeft(m[1], 5)
	return code, "01" <= code[:2] && code[:2] <= "98" && code[:2] != "96"
}

var (
	postcodeFirst = regexp.MustCompile(`^(?:F-?\s?)?(\d{2} ?\d{3})[\s,;:/|–-]+(\pL.*)$`)
	postcodeLast  = regexp.MustCompile(`^(\pL.*?)(?:[\s,;:/|–-]+\(?|\()\s*(?:F-?\s?)?(\d{2} ?\d{3})\s*\)?$`)
)

// PostalTown splits a text that is a postcode and a town, in one order or the other: 48000 Mende, Mende (48000).
func PostalTown(s string) (code, town string, ok bool) {
	s = strings.TrimSpace(s)
	if m := postcodeFirst.FindStringSubmatch(s); m != nil {
		code, town = m[1], m[2]
	} else if m := postcodeLast.FindStringSubmatch(s); m != nil {
		code, town = m[2], m[1]
	} else {
		return "", "", false
	}
	if code, ok = Postcode(code); !ok || strings.ContainsAny(town, "0123456789") && !townNumber.MatchString(town) {
		return "", "", false
	}
	return code, strings.TrimSpace(town), true
}

// townNumber matches a number after a town: that of an arrondissement or of a CEDEX.
var townNumber = regexp.MustCompile(`(?i)^\PN+\s(cedex\s\d{1,2}|\d{1,2}(e|er|ème|eme)?)( arrondissement)?$`)

// InseeCode reads the INSEE code of a commune: 48095, 1004 for 01004, 2a004 for 2A004.
func InseeCode(s string) (string, bool) {
	m := inseePattern.FindStringSubmatch(strings.ToUpper(dropSpaces(s)))
	if m == nil {
		return "", false
	}
	code := padLeft(m[1], 5)
	department := code[:2]
	return code, "01" <= department && department <= "98" && department != "20" && department != "96"
}

// padLeft left-pads digits with zeros to n digits. A spreadsheet reads codes as numbers and drops their zeros.
func padLeft(digits string, n int) string { return strings.Repeat("0", max(0, n-len(digits))) + digits }

var siretPattern = regexp.MustCompile(`^(\d{13,14})(?:[.,]0+)?$`)

// laPoste is the SIREN of La Poste. The SIRETs of its post offices have a check of their own: the sum of the digits is a multiple of 5.
const laPoste = "356000000"

// Siret reads a SIRET, the number of an establishment: 14 digits whose check digit is right. Spaces and points are removed, and a
// zero that a spreadsheet dropped is put back.
func Siret(s string) (string, bool) {
	m := siretPattern.FindStringSubmatch(dropSpaces(s))
	if m == nil {
		return "", false
	}
	code := padLeft(m[1], 14)
	sum, luhn := 0, 0
	for i, r := range code {
		digit := int(r - '0')
		sum += digit
		if i%2 == 0 {
			digit = digit*2/10 + digit*2%10
		}
		luhn += digit
	}
	return code, sum > 0 && (luhn%10 == 0 || sum%5 == 0 && strings.HasPrefix(code, laPoste))
}

var (
	plainDecimal     = regexp.MustCompile(`^[+-]?(?:\d+(?:[.,]\d*)?|[.,]\d+)(?:[eE][+-]?\d+)?$`)
	thousandsInPoint = regexp.MustCompile(`^[+-]?\d{1,3}(?:\.\d{3})+,\d+$`) // 1.234,5
	thousandsInComma = regexp.MustCompile(`^[+-]?\d{1,3}(?:,\d{3})+\.\d+$`) // 1,234.5
)

// Decimal reads a finite number with a decimal point or comma: 44,518 and 1 234,5 and −3.5. A text with two signs that may both be
// decimal is not ok, unless one separates thousands and the other comes last.
func Decimal(s string) (float64, bool) {
	s = strings.NewReplacer("−", "-", "–", "-", "'", "", "’", "").Replace(dropSpaces(s))
	switch {
	case thousandsInPoint.MatchString(s):
		s = strings.ReplaceAll(s, ".", "")
	case thousandsInComma.MatchString(s):
		s = strings.ReplaceAll(s, ",", "")
	case !plainDecimal.MatchString(s):
		return 0, false
	}
	n, err := strconv.ParseFloat(strings.Replace(s, ",", ".", 1), 64)
	return n, err == nil && !math.IsInf(n, 0)
}

var wholeNumber = regexp.MustCompile(`^(-?\d+)[.,]0+$`)

// Number removes the .0 that programs add to whole numbers in columns with empty cells: 105.0 is 105. changed reports whether there was
// one. All other digits stay, leading zeros too.
func Number(s string) (text string, changed bool) {
	if m := wholeNumber.FindStringSubmatch(strings.TrimSpace(s)); m != nil {
		return m[1], true
	}
	return s, false
}

// foldAccents is a text in lower case without accents.
func foldAccents(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Mn, r) {
			return -1
		}
		return r
	}, norm.NFD.String(strings.ToLower(s)))
}
