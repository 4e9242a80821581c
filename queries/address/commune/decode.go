package commune

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"encoding/binary"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// packed is the table: gzip of a line an entry, with tabs between code, name, kind, parent, population, postcodes, centre
// (thousandths of a degree) and bounds (thousandths from the centre, outwards). Unknown numbers are empty.
//
//go:embed communes.tsv.gz
var packed []byte

const milli = 1000

func decode(packed []byte) (*Table, error) {
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("unpack the communes: %w", err)
	}
	var b strings.Builder
	b.Grow(unpackedSize(packed))
	if _, err := io.Copy(&b, r); err != nil {
		return nil, fmt.Errorf("unpack the communes: %w", err)
	}
	text := b.String()
	t := &Table{communes: make([]Commune, 0, strings.Count(text, "\n"))}
	for line := range strings.Lines(text) {
		c, err := decodeLine(strings.TrimSuffix(line, "\n"))
		if err != nil {
			return nil, fmt.Errorf("communes, %q: %w", line, err)
		}
		t.communes = append(t.communes, c)
	}
	t.index()
	return t, nil
}

// unpackedSize is what the end of a gzip file says of its content, so that the text is allocated once.
func unpackedSize(packed []byte) int {
	return int(min(binary.LittleEndian.Uint32(packed[len(packed)-4:]), 1<<24))
}

// decodeLine reads one entry; its text stays part of the line.
func decodeLine(line string) (c Commune, err error) {
	numbers := [8]int{} // kind, population, centre, bounds
	at := 0
	number := func(s string) {
		if n, bad := strconv.Atoi(s); s != "" {
			numbers[at] = n
			if bad != nil {
				err = bad
			}
		}
		at++
	}
	for column := 0; column < 12; column++ {
		value, rest, _ := strings.Cut(line, "\t")
		line = rest
		switch column {
		case 0:
			c.Code = value
		case 1:
			c.Name = value
		case 3:
			c.Parent = value
		case 5:
			c.postcodes = value
		default:
			number(value)
		}
	}
	c.Kind, c.Population = Kind(numbers[0]), uint32(numbers[1])
	lon, lat := numbers[2], numbers[3]
	c.Lon, c.Lat = degrees(lon), degrees(lat)
	c.Bounds = Bounds{degrees(lon - numbers[4]), degrees(lat - numbers[5]), degrees(lon + numbers[6]), degrees(lat + numbers[7])}
	return c, err
}

func degrees(thousandths int) float64 { return float64(thousandths) / milli }
