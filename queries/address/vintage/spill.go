package vintage

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"os"
	"strings"

	"lieudit/queries/address/ban"
)

// spill keeps the rows of a build on disk until all have been seen. Rows of one commune that follow each other make a
// segment; within one, a field that repeats the row before costs one bit.
type spill struct {
	file     *os.File
	w        *bufio.Writer
	at       int64
	buf      []byte
	last     ban.Row
	code     string
	segments map[string][]segment
	rows     map[string]int
}

// segment is a run of rows of one commune in the file.
type segment struct {
	offset, length int64
	rows           int
}

func newSpill(file *os.File) *spill {
	return &spill{file: file, w: bufio.NewWriterSize(&paced{file: file}, 1<<20), segments: map[string][]segment{}, rows: map[string]int{}}
}

// add writes one row.
func (s *spill) add(r *ban.Row) error {
	if r.CodeInsee != s.code || s.at == 0 {
		s.code, s.last = strings.Clone(r.CodeInsee), ban.Row{}
		s.segments[s.code] = append(s.segments[s.code], segment{offset: s.at})
	}
	s.buf = appendRow(s.buf[:0], r, &s.last)
	s.last = *r
	runs := s.segments[s.code]
	run := &runs[len(runs)-1]
	run.rows++
	run.length += int64(len(s.buf))
	s.at += int64(len(s.buf))
	s.rows[s.code]++
	_, err := s.w.Write(s.buf)
	return err
}

// read gives back all rows of a commune.
func (s *spill) read(code string) ([]ban.Row, error) {
	rows := make([]ban.Row, 0, s.rows[code])
	for _, run := range s.segments[code] {
		data := make([]byte, run.length)
		if _, err := s.file.ReadAt(data, run.offset); err != nil {
			return nil, fmt.Errorf("read the rows of %s again: %w", code, err)
		}
		var last ban.Row
		for range run.rows {
			row, n := decodeRow(data, &last)
			if n <= 0 {
				return nil, fmt.Errorf("read the rows of %s again: %w", code, io.ErrUnexpectedEOF)
			}
			data, last = data[n:], row
			rows = append(rows, row)
		}
	}
	return rows, nil
}

// fields are the texts of a row, the commune's code aside.
func fields(r *ban.Row) [13]*string {
	return [...]*string{&r.ID, &r.IDBan, &r.Rep, &r.Voie, &r.LieuDit, &r.NomAFNOR, &r.CodePostal, &r.CodeInsee, &r.Commune,
		&r.CodeInseeAncienne, &r.CommuneAncienne, &r.Acheminement, &r.TypePosition}
}

func appendRow(buf []byte, r, last *ban.Row) []byte {
	now, before := fields(r), fields(last)
	var same uint16
	for i := range now {
		if *now[i] == *before[i] {
			same |= 1 << i
		}
	}
	if r.Certifie {
		same |= 1 << 13
	}
	same |= uint16(r.Kind&1) << 14
	buf = binary.LittleEndian.AppendUint16(buf, same)
	for i := range now {
		if same&(1<<i) == 0 {
			buf = appendText(buf, *now[i])
		}
	}
	buf = binary.AppendUvarint(buf, uint64(r.Numero))
	for _, f := range [...]float64{r.Lon * 1e6, r.Lat * 1e6, r.X * 100, r.Y * 100} {
		buf = binary.LittleEndian.AppendUint32(buf, uint32(fixed(f)))
	}
	return appendText(buf, strings.Join(r.Parcelles, "|"))
}

// fixed rounds to the nearest number that fits, and makes nothing of what is none.
func fixed(f float64) int32 {
	if math.IsNaN(f) {
		return 0
	}
	return int32(min(max(math.Round(f), math.MinInt32), math.MaxInt32))
}

func appendText(buf []byte, s string) []byte {
	return append(binary.AppendUvarint(buf, uint64(len(s))), s...)
}

// decodeRow reads one row and says how many bytes it took, or 0 when it is cut short.
func decodeRow(data []byte, last *ban.Row) (r ban.Row, n int) {
	d := &decoder{rest: data}
	r = *last
	same := d.u16()
	for i, f := range fields(&r) {
		if same&(1<<i) == 0 {
			*f = d.text()
		}
	}
	r.Certifie, r.Kind = same&(1<<13) != 0, ban.Kind(same>>14&1)
	r.Numero = uint32(d.uvarint())
	r.Lon, r.Lat = float64(d.i32())/1e6, float64(d.i32())/1e6
	r.X, r.Y = float64(d.i32())/100, float64(d.i32())/100
	r.Parcelles = nil
	if joined := d.text(); joined != "" {
		r.Parcelles = strings.Split(joined, "|")
	}
	if d.short {
		return r, 0
	}
	return r, len(data) - len(d.rest)
}

// decoder reads fields one after the other and remembers when they ran out.
type decoder struct {
	rest  []byte
	short bool
}

func (d *decoder) take(n uint64) []byte {
	if n > uint64(len(d.rest)) {
		d.short, d.rest = true, nil
		return make([]byte, min(n, 8))
	}
	out := d.rest[:n]
	d.rest = d.rest[n:]
	return out
}

func (d *decoder) u16() uint16 { return binary.LittleEndian.Uint16(d.take(2)) }
func (d *decoder) i32() int32  { return int32(binary.LittleEndian.Uint32(d.take(4))) }

func (d *decoder) uvarint() uint64 {
	v, n := binary.Uvarint(d.rest)
	d.take(uint64(max(n, 0)))
	d.short = d.short || n <= 0
	return v
}

func (d *decoder) text() string { return string(d.take(d.uvarint())) }
