package vintage

import (
	"bufio"
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"iter"
	"math"
	"os"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"lieudit/queries/address/ban"
	"lieudit/queries/address/text"
	"lieudit/queries/mappedfile"
)

// rowSpill keeps the rows of a build on disk until all have come, because rows of one commune may be anywhere in the
// files. Rows of a commune that follow each other make a segment. Within a segment a field that repeats the row before
// costs one bit.
type rowSpill struct {
	file      *os.File
	w         *bufio.Writer
	offset    int64
	buf       []byte
	last      ban.Row
	code      string
	segments  map[string][]segment
	rowCounts map[string]int
}

// segment is a run of rows of one commune in the spill file.
type segment struct {
	offset, length int64
	rows           int
}

func newRowSpill(file *os.File) *rowSpill {
	return &rowSpill{file: file, w: bufio.NewWriterSize(mappedfile.NewPacedWriter(file, 0), 1<<20), segments: map[string][]segment{}, rowCounts: map[string]int{}}
}

// append writes one row.
func (s *rowSpill) append(r *ban.Row) error {
	if r.CodeInsee != s.code || s.offset == 0 {
		s.code, s.last = strings.Clone(r.CodeInsee), ban.Row{}
		s.segments[s.code] = append(s.segments[s.code], segment{offset: s.offset})
	}
	s.buf = appendRow(s.buf[:0], r, &s.last)
	s.last = *r
	runs := s.segments[s.code]
	run := &runs[len(runs)-1]
	run.rows++
	run.length += int64(len(s.buf))
	s.offset += int64(len(s.buf))
	s.rowCounts[s.code]++
	_, err := s.w.Write(s.buf)
	return err
}

// readCommune returns all rows of a commune.
func (s *rowSpill) readCommune(code string) ([]ban.Row, error) {
	rows := make([]ban.Row, 0, s.rowCounts[code])
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

// rowTexts are the text fields of a row in the order of the encoding.
func rowTexts(r *ban.Row) [13]*string {
	return [...]*string{&r.ID, &r.IDBan, &r.Rep, &r.Voie, &r.LieuDit, &r.NomAFNOR, &r.CodePostal, &r.CodeInsee, &r.Commune,
		&r.CodeInseeAncienne, &r.CommuneAncienne, &r.Acheminement, &r.TypePosition}
}

// appendRow encodes a row. A bit mask says which texts equal those of the row before; only the others follow.
func appendRow(buf []byte, r, last *ban.Row) []byte {
	now, before := rowTexts(r), rowTexts(last)
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
	for _, f := range [...]float64{r.Lon * PointUnit, r.Lat * PointUnit, r.X * 100, r.Y * 100} {
		buf = binary.LittleEndian.AppendUint32(buf, uint32(roundInt32(f)))
	}
	return appendText(buf, strings.Join(r.Parcelles, "|"))
}

// roundInt32 rounds to the nearest int32; NaN becomes 0.
func roundInt32(f float64) int32 {
	if math.IsNaN(f) {
		return 0
	}
	return int32(min(max(math.Round(f), math.MinInt32), math.MaxInt32))
}

func appendText(buf []byte, s string) []byte {
	return append(binary.AppendUvarint(buf, uint64(len(s))), s...)
}

// decodeRow decodes one row and returns how many bytes it has, or 0 when it is cut short.
func decodeRow(data []byte, last *ban.Row) (r ban.Row, n int) {
	d := &rowDecoder{rest: data}
	r = *last
	same := d.u16()
	for i, f := range rowTexts(&r) {
		if same&(1<<i) == 0 {
			*f = d.text()
		}
	}
	r.Certifie, r.Kind = same&(1<<13) != 0, ban.Kind(same>>14&1)
	r.Numero = uint32(d.uvarint())
	r.Lon, r.Lat = float64(d.i32())/PointUnit, float64(d.i32())/PointUnit
	r.X, r.Y = float64(d.i32())/100, float64(d.i32())/100
	r.Parcelles = nil
	if joined := d.text(); joined != "" {
		r.Parcelles = strings.Split(joined, "|")
	}
	if d.isTruncated {
		return r, 0
	}
	return r, len(data) - len(d.rest)
}

// rowDecoder reads fields one after the other and remembers whether the data ended early.
type rowDecoder struct {
	rest        []byte
	isTruncated bool
}

// next returns the next n bytes, zeros when fewer are left.
func (d *rowDecoder) next(n uint64) []byte {
	if n > uint64(len(d.rest)) {
		d.isTruncated, d.rest = true, nil
		return make([]byte, min(n, 8))
	}
	out := d.rest[:n]
	d.rest = d.rest[n:]
	return out
}

func (d *rowDecoder) u16() uint16 { return binary.LittleEndian.Uint16(d.next(2)) }
func (d *rowDecoder) i32() int32  { return int32(binary.LittleEndian.Uint32(d.next(4))) }

func (d *rowDecoder) uvarint() uint64 {
	v, n := binary.Uvarint(d.rest)
	d.next(uint64(max(n, 0)))
	d.isTruncated = d.isTruncated || n <= 0
	return v
}

func (d *rowDecoder) text() string { return string(d.next(d.uvarint())) }

// maxWaiting is the number of batches that may wait to be consumed.
const maxWaiting = 4

// consumeBatches produces items in one goroutine and consumes them, in batches and in order, in another. It returns
// when both have ended. The first error of either stops both.
func consumeBatches[T any](ctx context.Context, items iter.Seq2[T, error], size int, consume func([]T) error) error {
	group, ctx := errgroup.WithContext(ctx)
	waiting := make(chan []T, maxWaiting)
	group.Go(func() error {
		defer close(waiting)
		return produceBatches(ctx, items, size, waiting)
	})
	group.Go(func() error {
		for batch := range waiting {
			if err := consume(batch); err != nil {
				return err
			}
		}
		return nil
	})
	return group.Wait()
}

// produceBatches sends items in batches until there are no more or ctx ends.
func produceBatches[T any](ctx context.Context, items iter.Seq2[T, error], size int, to chan<- []T) error {
	batch := make([]T, 0, size)
	send := func() error {
		select {
		case to <- batch:
			batch = make([]T, 0, size)
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	for item, err := range items {
		if err != nil {
			return err
		}
		if batch = append(batch, item); len(batch) == size {
			if err := send(); err != nil {
				return err
			}
		}
	}
	return send()
}

// communeRows is a commune with its rows grouped by street.
type communeRows struct {
	code       string
	streets    []streetRows
	duplicates int
}

// groupCommunes yields the communes one by one in the given order.
func (s *rowSpill) groupCommunes(codes []string) iter.Seq2[communeRows, error] {
	return func(yield func(communeRows, error) bool) {
		for _, code := range codes {
			rows, err := s.readCommune(code)
			c := communeRows{code: code}
			if err == nil {
				c.streets, c.duplicates = groupByStreet(rows)
			}
			if !yield(c, err) || err != nil {
				return
			}
		}
	}
}

// streetRows is a street with its rows, or a locality with its one row.
type streetRows struct {
	key, name  string
	isLocality bool
	rows       []ban.Row
}

// groupByStreet groups the rows of a commune by street and drops rows with the same id. The result depends on the rows
// and not on their order.
func groupByStreet(rows []ban.Row) (streets []streetRows, duplicates int) {
	index := map[[2]string]int{}
	for i := range rows {
		key := [2]string{streetKey(&rows[i]), rows[i].Voie}
		at, known := index[key]
		if !known {
			at = len(streets)
			index[key] = at
			streets = append(streets, streetRows{key: key[0], name: key[1], isLocality: rows[i].Kind == ban.Locality})
		}
		streets[at].rows = append(streets[at].rows, rows[i])
	}
	slices.SortFunc(streets, func(x, y streetRows) int { return cmp.Or(cmp.Compare(x.key, y.key), cmp.Compare(x.name, y.name)) })
	for i := range streets {
		s := &streets[i]
		slices.SortFunc(s.rows, compareRows)
		before := len(s.rows)
		s.rows = slices.CompactFunc(s.rows, func(x, y ban.Row) bool { return x.ID == y.ID })
		if s.isLocality {
			s.rows = s.rows[:1]
		}
		duplicates += before - len(s.rows)
	}
	return streets, duplicates
}

// compareRows is a total order: rows that compare as equal are equal in all stored fields.
func compareRows(x, y ban.Row) int {
	if c := cmp.Or(cmp.Compare(x.Numero, y.Numero), cmp.Compare(x.Rep, y.Rep), cmp.Compare(x.ID, y.ID)); c != 0 {
		return c
	}
	for i, f := range rowTexts(&x) {
		if c := cmp.Compare(*f, *rowTexts(&y)[i]); c != 0 {
			return c
		}
	}
	return cmp.Or(cmp.Compare(x.Lon, y.Lon), cmp.Compare(x.Lat, y.Lat), cmp.Compare(x.X, y.X), cmp.Compare(x.Y, y.Y),
		slices.Compare(x.Parcelles, y.Parcelles))
}

// streetKey is the part of a row's id that identifies the street: all before the number. Irregular ids are cut at the
// second underscore; those without one get a key of the commune and the street's name.
func streetKey(r *ban.Row) string {
	if r.Kind == ban.Locality {
		return r.ID
	}
	if key, ok := regularKey(r); ok {
		return key
	}
	first, rest, _ := strings.Cut(r.ID, "_")
	if second, _, ok := strings.Cut(rest, "_"); ok {
		return first + "_" + second
	}
	return r.CodeInsee + "_" + strings.ReplaceAll(text.Fold(r.Voie), " ", "-")
}

// regularKey is the street's key in a regular id.
func regularKey(r *ban.Row) (string, bool) {
	key, ok := r.ID, true
	if r.Rep != "" {
		key, ok = strings.CutSuffix(key, "_"+r.Rep)
	}
	if !ok || len(key) < 6 {
		return "", false
	}
	tail := key[len(key)-6:]
	key = key[:len(key)-6]
	ok = tail == fmt.Sprintf("_%05d", r.Numero) && strings.Count(key, "_") == 1
	return key, ok
}

// hasRegularID reports whether a row's id is the street's key, the number in five digits and the repetition index, so
// that it need not be stored.
func hasRegularID(r *ban.Row, key string) bool {
	rest, ok := strings.CutPrefix(r.ID, key)
	if !ok || len(rest) < 6 || rest[0] != '_' {
		return false
	}
	n := uint32(0)
	for _, c := range []byte(rest[1:6]) {
		if c < '0' || c > '9' {
			return false
		}
		n = n*10 + uint32(c-'0')
	}
	return n == r.Numero && (rest[6:] == "" && r.Rep == "" || r.Rep != "" && rest[6:] == "_"+r.Rep)
}
