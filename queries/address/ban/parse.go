package ban

import (
	"bytes"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// noNumber is the house number by which communes mark a place without numbers.
const noNumber = 99999

// row parses the record at hand into last, and says what is wrong with one it cannot use.
func (p *parser) row() (Fault, bool) {
	if len(p.split.fields) < p.width {
		return Short, false
	}
	if !p.readable() {
		return Encoding, false
	}
	r := &p.last
	if fault, ok := p.number(r); !ok {
		return fault, false
	}
	if !p.place(r) {
		return Position, false
	}
	return p.words(r)
}

// readable says whether all fields are UTF-8 without control characters, and mends letters that were encoded twice.
func (p *parser) readable() bool {
	p.mended = false
	for i, f := range p.split.fields {
		switch ascii, ok := plainText(f); {
		case !ok:
			return false
		case ascii:
			continue
		}
		whole := mend(f)
		if !utf8.Valid(whole) || bytes.IndexFunc(whole, control) >= 0 {
			return false
		}
		p.mended = p.mended || len(whole) < len(f)
		p.split.fields[i] = whole
	}
	return true
}

// plainText looks at a field as far as it is ASCII: whether all of it is, and whether it is without control characters.
func plainText(b []byte) (ascii, ok bool) {
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

func control(r rune) bool {
	return r < ' ' && r != '\n' && r != '\t' || r == 0x7f || r >= 0x80 && r < 0xa0 || r == utf8.RuneError
}

func (p *parser) get(f field) []byte {
	if i := p.at[f]; i >= 0 {
		return bytes.TrimSpace(p.split.fields[i])
	}
	return nil
}

// set stores a column, in the string of the row before where it repeats.
func (p *parser) set(s *string, f field) {
	if b := p.get(f); string(b) != *s {
		*s = string(b)
	}
}

// number reads kind and house number.
func (p *parser) number(r *Row) (Fault, bool) {
	r.Kind, r.Numero = HouseNumber, 0
	if p.locality {
		r.Kind = Locality
		return 0, true
	}
	b := p.get(fieldNumero)
	if len(b) == 0 || len(b) > 5 {
		return Number, false
	}
	n := uint32(0)
	for _, c := range b {
		if c < '0' || c > '9' {
			return Number, false
		}
		n = n*10 + uint32(c-'0')
	}
	switch {
	case n == noNumber:
		r.Kind = Locality
	case n > 9999:
		return Number, false
	default:
		r.Numero = n
	}
	return 0, true
}

// place reads the coordinates, and says whether they are in France.
func (p *parser) place(r *Row) bool {
	lon, lonOK := coordinate(p.get(fieldLon))
	lat, latOK := coordinate(p.get(fieldLat))
	if !lonOK || !latOK || !inFrance(lon, lat) {
		return false
	}
	r.Lon, r.Lat = lon, lat
	r.X, _ = coordinate(p.get(fieldX))
	r.Y, _ = coordinate(p.get(fieldY))
	return true
}

// exact are the powers of ten that a float64 holds exactly.
var exact = [...]float64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15}

// coordinate reads a decimal number. Up to 15 digits, mantissa and power of ten are exact, so their quotient is rounded
// as strconv would.
func coordinate(b []byte) (float64, bool) {
	digits := b
	if len(b) > 0 && b[0] == '-' {
		digits = b[1:]
	}
	if len(digits) == 0 || len(digits) > 15 {
		return slow(b)
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
			return slow(b)
		}
	}
	v := float64(mantissa) / exact[decimals]
	if len(digits) < len(b) {
		v = -v
	}
	return v, true
}

func slow(b []byte) (float64, bool) {
	v, err := strconv.ParseFloat(string(b), 64)
	return v, err == nil && !math.IsNaN(v) && !math.IsInf(v, 0)
}

// words reads the columns that are text.
func (p *parser) words(r *Row) (Fault, bool) {
	id, code := p.get(fieldID), p.get(fieldCodeInsee)
	if len(id) == 0 || !communeCode(code) {
		return NoCode, false
	}
	name := fieldVoie
	if p.locality {
		name = fieldPlace
	}
	if len(p.get(name)) == 0 {
		return NoName, false
	}
	p.set(&r.Voie, name)
	p.set(&r.ID, fieldID)
	p.idBan(r)
	p.set(&r.Rep, fieldRep)
	p.set(&r.LieuDit, fieldLieuDit)
	p.set(&r.Alias, fieldAlias)
	p.set(&r.NomAFNOR, fieldNomAFNOR)
	p.set(&r.CodePostal, fieldCodePostal)
	p.set(&r.CodeInsee, fieldCodeInsee)
	p.set(&r.Commune, fieldCommune)
	p.set(&r.CodeInseeAncienne, fieldCodeInseeAncienne)
	p.set(&r.CommuneAncienne, fieldCommuneAncienne)
	p.set(&r.Acheminement, fieldAcheminement)
	p.set(&r.TypePosition, fieldTypePosition)
	p.certified(r)
	p.parcels(r)
	return 0, true
}

// noIDBan is what the base writes for some addresses that have no id_ban; for others it writes nothing.
const noIDBan = "00000000-0000-0000-0000-000000000000"

func (p *parser) idBan(r *Row) {
	p.set(&r.IDBan, fieldIDBan)
	if r.IDBan == noIDBan {
		r.IDBan = ""
	}
}

func (p *parser) certified(r *Row) {
	b := p.get(fieldCertifie)
	r.Certifie = len(b) > 0 && (b[0] == '1' || b[0] == 't')
}

// parcels reads the cadastral references, of which many rows have one and some have dozens.
func (p *parser) parcels(r *Row) {
	b := p.get(fieldParcelles)
	switch {
	case len(b) == 0:
		r.Parcelles = nil
	default:
		r.Parcelles = strings.Split(string(b), "|")
	}
}

// communeCode says whether this is the code of a commune: five digits, or 2A and 2B and three.
func communeCode(b []byte) bool {
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
