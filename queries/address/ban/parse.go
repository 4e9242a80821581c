package ban

import (
	"bytes"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"
)

// placeholderNumber is the house number with which communes mark a locality.
const placeholderNumber = 99999

// parseRow parses the current record into last. It returns the fault of a record that cannot be used.
func (p *parser) parseRow() (Fault, bool) {
	if len(p.records.fields) < p.width {
		return TooFewColumns, false
	}
	if !p.checkEncoding() {
		return BadEncoding, false
	}
	r := &p.last
	if fault, ok := p.parseNumber(r); !ok {
		return fault, false
	}
	if !p.parsePosition(r) {
		return BadPosition, false
	}
	return p.parseTexts(r)
}

// checkEncoding reports whether all fields are UTF-8 without control characters. It repairs letters that were encoded
// twice.
func (p *parser) checkEncoding() bool {
	p.isRepaired = false
	for i, f := range p.records.fields {
		switch ascii, ok := scanASCII(f); {
		case !ok:
			return false
		case ascii:
			continue
		}
		whole := repairEncoding(f)
		if !utf8.Valid(whole) || bytes.IndexFunc(whole, isControl) >= 0 {
			return false
		}
		p.isRepaired = p.isRepaired || len(whole) < len(f)
		p.records.fields[i] = whole
	}
	return true
}

// scanASCII reports whether a field is all ASCII, and whether its ASCII part is free of control characters.
func scanASCII(b []byte) (ascii, ok bool) {
	for _, c := range b {
		if c >= utf8.RuneSelf {
			return false, true
		}
		if c < ' ' && c != '\n' && c != '\t' {
			return false, false
		}
	}
	return true, true
}

func isControl(r rune) bool {
	return r < ' ' && r != '\n' && r != '\t' || r == 0x7f || r >= 0x80 && r < 0xa0 || r == utf8.RuneError
}

// column is the trimmed value of a field in the current record, nil without a column.
func (p *parser) column(f field) []byte {
	if i := p.index[f]; i >= 0 {
		return bytes.TrimSpace(p.records.fields[i])
	}
	return nil
}

// setText stores a column. It keeps the string of the row before when the column repeats, which saves an allocation.
func (p *parser) setText(s *string, f field) {
	if b := p.column(f); string(b) != *s {
		*s = string(b)
	}
}

// parseNumber sets the kind and the house number.
func (p *parser) parseNumber(r *Row) (Fault, bool) {
	r.Kind, r.Numero = HouseNumber, 0
	if p.hasLocalities {
		r.Kind = Locality
		return 0, true
	}
	b := p.column(fieldNumero)
	if len(b) == 0 || len(b) > 5 {
		return BadNumber, false
	}
	n := uint32(0)
	for _, c := range b {
		if c < '0' || c > '9' {
			return BadNumber, false
		}
		n = n*10 + uint32(c-'0')
	}
	switch {
	case n == placeholderNumber:
		r.Kind = Locality
	case n > 9999:
		return BadNumber, false
	default:
		r.Numero = n
	}
	return 0, true
}

// parsePosition sets the coordinates and reports whether they are in France.
func (p *parser) parsePosition(r *Row) bool {
	lon, lonOK := parseCoordinate(p.column(fieldLon))
	lat, latOK := parseCoordinate(p.column(fieldLat))
	if !lonOK || !latOK || !inFrance(lon, lat) {
		return false
	}
	r.Lon, r.Lat = lon, lat
	r.X, _ = parseCoordinate(p.column(fieldX))
	r.Y, _ = parseCoordinate(p.column(fieldY))
	return true
}

// powersOfTen are the powers of ten that a float64 holds exactly.
var powersOfTen = [...]float64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15}

// parseCoordinate parses a decimal number. With 15 digits or fewer, mantissa and power of ten are exact, so their
// quotient is rounded as by strconv.
func parseCoordinate(b []byte) (float64, bool) {
	digits := b
	if len(b) > 0 && b[0] == '-' {
		digits = b[1:]
	}
	if len(digits) == 0 || len(digits) > 15 {
		return parseSlowly(b)
	}
	mantissa, decimals, point := int64(0), 0, false
	for _, c := range digits {
		switch {
		case c >= '0' && c <= '9':
			mantissa = mantissa*10 + int64(c-'0')
			if point {
				decimals++
			}
		case c == '.' && !point:
			point = true
		default:
			return parseSlowly(b)
		}
	}
	v := float64(mantissa) / powersOfTen[decimals]
	if len(digits) < len(b) {
		v = -v
	}
	return v, true
}

// parseSlowly parses the numbers that parseCoordinate cannot round exactly.
func parseSlowly(b []byte) (float64, bool) {
	v, err := strconv.ParseFloat(string(b), 64)
	return v, err == nil && !math.IsNaN(v) && !math.IsInf(v, 0)
}

// parseTexts sets the columns that are text.
func (p *parser) parseTexts(r *Row) (Fault, bool) {
	id, code := p.column(fieldID), p.column(fieldCodeInsee)
	if len(id) == 0 || !isCommuneCode(code) {
		return MissingCode, false
	}
	name := fieldVoie
	if p.hasLocalities {
		name = fieldPlace
	}
	if len(p.column(name)) == 0 {
		return MissingName, false
	}
	p.setText(&r.Voie, name)
	p.setText(&r.ID, fieldID)
	p.parseIDBan(r)
	p.setText(&r.Rep, fieldRep)
	p.setText(&r.LieuDit, fieldLieuDit)
	p.setText(&r.Alias, fieldAlias)
	p.setText(&r.NomAFNOR, fieldNomAFNOR)
	p.setText(&r.CodePostal, fieldCodePostal)
	p.setText(&r.CodeInsee, fieldCodeInsee)
	p.setText(&r.Commune, fieldCommune)
	p.setText(&r.CodeInseeAncienne, fieldCodeInseeAncienne)
	p.setText(&r.CommuneAncienne, fieldCommuneAncienne)
	p.setText(&r.Acheminement, fieldAcheminement)
	p.setText(&r.TypePosition, fieldTypePosition)
	p.parseCertified(r)
	p.parseParcels(r)
	return 0, true
}

// noIDBan is the id_ban in some rows without one. Others have an empty column.
const noIDBan = "00000000-0000-0000-0000-000000000000"

// parseIDBan sets the id_ban, which stays empty for noIDBan.
func (p *parser) parseIDBan(r *Row) {
	p.setText(&r.IDBan, fieldIDBan)
	if r.IDBan == noIDBan {
		r.IDBan = ""
	}
}

// parseCertified sets the certification, which the files write as 1 or true.
func (p *parser) parseCertified(r *Row) {
	b := p.column(fieldCertifie)
	r.Certifie = len(b) > 0 && (b[0] == '1' || b[0] == 't')
}

// parseParcels sets the cadastral parcels: most rows have one, some have dozens.
func (p *parser) parseParcels(r *Row) {
	b := p.column(fieldParcelles)
	switch {
	case len(b) == 0:
		r.Parcelles = nil
	default:
		r.Parcelles = strings.Split(string(b), "|")
	}
}

// isCommuneCode reports whether b is the code of a commune: five digits, or 2A or 2B and three digits.
func isCommuneCode(b []byte) bool {
	if len(b) != 5 {
		return false
	}
	for i, c := range b {
		if (c < '0' || c > '9') && (i != 1 || b[0] != '2' || c != 'A' && c != 'B') {
			return false
		}
	}
	return true
}

// repairEncoding decodes letters that were encoded twice, as in GalliÃ©ni. No French word holds two such signs in a
// row. It returns the slice itself when nothing needs repair.
func repairEncoding(b []byte) []byte {
	var out []byte
	copied := 0 // bytes of b that out holds
	for i := 0; i+2 < len(b); i++ {
		if b[i] != 0xC3 || b[i+2] < 0xC2 { // Ã, Â, â or Å, and no plain letter after it
			continue
		}
		if letter, length := decodeTwiceEncoded(b[i:]); length > 0 {
			out = append(append(out, b[copied:i]...), letter...)
			copied = i + length
			i = copied - 1
		}
	}
	if out == nil {
		return b
	}
	return append(out, b[copied:]...)
}

// decodeTwiceEncoded is the letter at the beginning of b that was encoded twice, and the number of its bytes in b; 0
// when there is none.
func decodeTwiceEncoded(b []byte) (letter []byte, length int) {
	for len(letter) < utf8.UTFMax && length < len(b) {
		r, size := utf8.DecodeRune(b[length:])
		once, ok := charmap.Windows1252.EncodeRune(r)
		if r >= 0x80 && r < 0xa0 {
			once, ok = byte(r), true
		}
		if !ok || once < utf8.RuneSelf {
			return nil, 0
		}
		letter, length = append(letter, once), length+size
		if utf8.FullRune(letter) {
			break
		}
	}
	if r, size := utf8.DecodeRune(letter); r == utf8.RuneError || size != len(letter) {
		return nil, 0
	}
	return letter, length
}

// box is a rectangle in degrees.
type box struct{ west, south, east, north float64 }

// territories are rectangles around the parts of France, with a margin.
var territories = [...]box{
	{-5.6, 41.2, 9.8, 51.3},         // the mainland and Corsica
	{55.1, -21.5, 55.95, -20.8},     // La Réunion
	{-61.3, 14.3, -60.7, 15.0},      // Martinique
	{-61.9, 15.7, -60.9, 16.6},      // Guadeloupe
	{-63.2, 17.8, -62.7, 18.2},      // Saint-Martin, Saint-Barthélemy
	{-54.7, 2.0, -51.5, 6.0},        // Guyane
	{44.9, -13.1, 45.4, -12.5},      // Mayotte
	{-56.6, 46.6, -56.0, 47.3},      // Saint-Pierre-et-Miquelon
	{163.4, -22.9, 168.4, -19.4},    // Nouvelle-Calédonie
	{-154.8, -27.8, -134.3, -7.7},   // Polynésie française
	{-178.3, -14.5, -176.0, -13.1},  // Wallis-et-Futuna
	{50.0, -50.0, 78.0, -37.0},      // the southern islands
	{-109.35, 10.2, -109.15, 10.45}, // Clipperton
}

// inFrance reports whether a position lies in one of the territories.
func inFrance(lon, lat float64) bool {
	for _, b := range territories {
		if lon >= b.west && lon <= b.east && lat >= b.south && lat <= b.north {
			return true
		}
	}
	return false
}
