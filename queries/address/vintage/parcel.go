package vintage

import (
	"encoding/binary"
	"fmt"
	"strings"
)

// A cadastral parcel is 14 characters: the commune's code, three digits of a former commune, two letters or digits of
// a section, four digits. Where the commune's code is the address's own, the rest is one number.
const (
	parcelLength = 14
	sectionBase  = 36
)

// appendParcels encodes the parcels of one address, with the size of what follows before it.
func appendParcels(buf []byte, code string, parcels []string) []byte {
	var body []byte
	for _, p := range parcels {
		if n, ok := parcelNumber(code, p); ok {
			body = binary.AppendUvarint(body, n<<1)
		} else {
			body = append(binary.AppendUvarint(body, uint64(len(p))<<1|1), p...)
		}
	}
	return append(binary.AppendUvarint(buf, uint64(len(body))), body...)
}

// parcelNumber is a parcel of the usual form as a number.
func parcelNumber(code, parcel string) (uint64, bool) {
	rest, ok := strings.CutPrefix(parcel, code)
	if !ok || len(parcel) != parcelLength || len(rest) != 9 {
		return 0, false
	}
	var n uint64
	for i := range len(rest) {
		base := uint64(10)
		if i == 3 || i == 4 {
			base = sectionBase
		}
		digit, ok := digitOf(rest[i])
		if !ok || digit >= base {
			return 0, false
		}
		n = n*base + digit
	}
	return n, true
}

func digitOf(c byte) (uint64, bool) {
	switch {
	case c >= '0' && c <= '9':
		return uint64(c - '0'), true
	case c >= 'A' && c <= 'Z':
		return uint64(c-'A') + 10, true
	}
	return 0, false
}

// parcelText is the parcel of a number.
func parcelText(code string, n uint64) string {
	const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	number, n := n%10_000, n/10_000
	second, n := n%sectionBase, n/sectionBase
	first, n := n%sectionBase, n/sectionBase
	return fmt.Sprintf("%s%03d%c%c%04d", code, n, digits[first], digits[second], number)
}

// parcelsOf decodes the parcels of one address; what is damaged is left out.
func parcelsOf(code string, body []byte) (parcels []string) {
	for len(body) > 0 {
		n, size := binary.Uvarint(body)
		if size <= 0 {
			return parcels
		}
		body = body[size:]
		if n&1 == 0 {
			parcels = append(parcels, parcelText(code, n>>1))
			continue
		}
		if n>>1 > uint64(len(body)) {
			return parcels
		}
		parcels, body = append(parcels, string(body[:n>>1])), body[n>>1:]
	}
	return parcels
}

// Parcels are the cadastral parcels of a row of a street.
func (v *Vintage) Parcels(row, street uint32) []string {
	from, to := bounded(v.streets.at(street).u32(16), v.streets.at(street+1).u32(16), len(v.parts[secParcels]))
	blob := v.parts[secParcels][from:to]
	for r := v.streets.at(street).u32(8); ; r++ {
		size, n := binary.Uvarint(blob)
		if n <= 0 || size > uint64(len(blob)-n) {
			return nil
		}
		if r == row {
			return parcelsOf(v.Commune(v.Street(street).Commune).String(), blob[n:n+int(size)])
		}
		blob = blob[n+int(size):]
	}
}
