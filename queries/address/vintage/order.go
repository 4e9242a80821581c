package vintage

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"os"
)

// writeCurves writes the order of rows and of streets along the curve, from the columns already written.
func (b *builder) writeCurves(ctx context.Context) error {
	rows, err := b.pointsOf(secLons, secLats, 4, 0)
	if err != nil {
		return err
	}
	sortKeyed(rows)
	for _, k := range rows {
		b.w.u32(secRowsByPlace, k.entity)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	streets, err := b.pointsOf(secStreets, secStreets, streetSize, 32)
	if err != nil {
		return err
	}
	streets = streets[:len(b.streets)]
	sortKeyed(streets)
	for _, k := range streets {
		b.w.u32(secStreetsByPlace, k.entity)
	}
	return ctx.Err()
}

// pointsOf reads the longitudes and latitudes back: one a record of that size, the second section's 4 bytes further
// when both are one.
func (b *builder) pointsOf(lons, lats section, size int64, at int64) ([]keyed, error) {
	x, err := b.w.reread(lons)
	if err != nil {
		return nil, err
	}
	y, further := x, at+4
	if lons != lats {
		if y, err = b.w.reread(lats); err != nil {
			return nil, err
		}
		further = at
	}
	all := make([]keyed, int64(b.w.parts[lons].length)/size)
	xr, yr := newStrider(x, size), newStrider(y, size)
	for i := range all {
		lon, lat := xr.i32(int64(i)*size+at), yr.i32(int64(i)*size+further)
		all[i] = keyed{curve(lon, lat), uint32(i)}
	}
	return all, errors.Join(xr.err, yr.err)
}

// strider reads numbers from a file at growing offsets.
type strider struct {
	file *os.File
	buf  []byte
	from int64
	size int64
	err  error
}

func newStrider(file *os.File, size int64) *strider {
	return &strider{file: file, size: size, buf: make([]byte, 0, size*16384)}
}

func (s *strider) i32(at int64) int32 {
	if at+4 > s.from+int64(len(s.buf)) {
		s.from = at / s.size * s.size
		n, err := s.file.ReadAt(s.buf[:cap(s.buf)], s.from)
		if err != nil && !errors.Is(err, io.EOF) {
			s.err = errors.Join(s.err, err)
		}
		s.buf = s.buf[:n]
	}
	if at+4 > s.from+int64(len(s.buf)) {
		s.err = io.ErrUnexpectedEOF
		return 0
	}
	return int32(binary.LittleEndian.Uint32(s.buf[at-s.from:]))
}

// reread gives the file of a section, with all that was written to it.
func (s *sectionWriter) reread(id section) (*os.File, error) {
	p := s.parts[id]
	return p.file, errors.Join(p.err, p.w.Flush())
}
