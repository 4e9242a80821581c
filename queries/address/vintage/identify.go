package vintage

import (
	"bufio"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"slices"

	"github.com/google/uuid"

	"lieudit/queries/address/ban"
)

// keyed is a row or street and the number it is sorted by.
type keyed struct {
	key    uint64
	entity uint32
}

func sortKeyed(all []keyed) {
	slices.SortFunc(all, func(x, y keyed) int { return cmp.Or(cmp.Compare(x.key, y.key), cmp.Compare(x.entity, y.entity)) })
}

// identifyRow settles the id_ban of a row, and by which other ids it is found.
func (b *builder) identifyRow(s *gathered, r *ban.Row, row uint32) {
	if r.ID != rowID([]byte(s.key), r.Numero, []byte(r.Rep)) {
		b.aliases = append(b.aliases, alias{id: r.ID, entity: row, odd: true})
	}
	made := madeUUID(b.space, r.ID)
	is := made
	if given, err := uuid.Parse(r.IDBan); err == nil {
		is = given
	}
	if b.prior != nil {
		former, found := b.prior.of(r)
		if found && r.IDBan == "" {
			is = former.uuid
		}
		b.rename(former, r.ID, row, false)
	}
	if is != made {
		b.w.u32(secUUIDOwners, row)
		b.w.bytes(secUUIDs, is[:])
	}
	b.hashed(is)
}

// identifyStreet does the same for a street.
func (b *builder) identifyStreet(s *gathered, street uint32) {
	made := madeUUID(b.space, s.key)
	is := made
	if given, err := uuid.Parse(s.rows[0].IDBan); s.locality && err == nil {
		is = given
	}
	if b.prior != nil {
		former, found := b.prior.ofStreet(s)
		if found && (!s.locality || s.rows[0].IDBan == "") {
			is = former.uuid
		}
		b.rename(former, s.key, street, true)
	}
	if is != made {
		b.owners = append(b.owners, owned{street, is})
	}
	b.streetUUIDs = append(b.streetUUIDs, binary.BigEndian.Uint64(is[:8]))
}

// rename keeps the ids under which something was known before.
func (b *builder) rename(f former, id string, entity uint32, street bool) {
	for _, old := range f.ids {
		if old != id {
			b.aliases = append(b.aliases, alias{id: old, entity: entity, street: street})
		}
	}
	if len(f.ids) > 0 && f.ids[0] != id && !street {
		b.summary.Inherited++
	}
}

// hashed keeps the first half of a row's UUID for the end.
func (b *builder) hashed(u uuid.UUID) {
	_, err := b.uuids.Write(u[:8])
	b.uuidErr = errors.Join(b.uuidErr, err)
}

// writeIdentity writes the order of the UUIDs and the ids that lead to other entities than they say.
func (b *builder) writeIdentity(ctx context.Context) error {
	rows := uint32(b.summary.Addresses)
	for _, o := range b.owners {
		b.w.u32(secUUIDOwners, rows+o.entity)
		b.w.bytes(secUUIDs, o.uuid[:])
	}
	b.writeAliases(rows)
	all, err := b.readHashed(rows)
	if err != nil {
		return err
	}
	for i, key := range b.streetUUIDs {
		all = append(all, keyed{key, rows + uint32(i)})
	}
	sortKeyed(all)
	for _, k := range all {
		b.w.u32(secByUUID, k.entity)
	}
	return ctx.Err()
}

func (b *builder) readHashed(rows uint32) ([]keyed, error) {
	if err := errors.Join(b.uuidErr, b.uuids.Flush()); err != nil {
		return nil, err
	}
	if _, err := b.uuidFile.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	all := make([]keyed, rows, int(rows)+len(b.streetUUIDs))
	r := bufio.NewReaderSize(b.uuidFile, 1<<20)
	var buf [8]byte
	for i := range all {
		if _, err := io.ReadFull(r, buf[:]); err != nil {
			return nil, err
		}
		all[i] = keyed{binary.BigEndian.Uint64(buf[:]), uint32(i)}
	}
	return all, nil
}

// writeAliases writes the irregular and the old ids, sorted. One that two entities had goes to the one that has it now,
// else to the first.
func (b *builder) writeAliases(rows uint32) {
	for i := range b.aliases {
		if a := &b.aliases[i]; a.street {
			a.entity += rows
		}
	}
	slices.SortFunc(b.aliases, func(x, y alias) int {
		return cmp.Or(cmp.Compare(x.id, y.id), -boolCompare(x.odd, y.odd), cmp.Compare(x.entity, y.entity))
	})
	b.aliases = slices.CompactFunc(b.aliases, func(x, y alias) bool { return x.id == y.id && !y.odd })
	at := uint32(0)
	b.w.u32(secAliasFirst, at)
	var odd [][2]uint32
	for i, a := range b.aliases {
		b.w.bytes(secAliasText, []byte(a.id))
		at += uint32(len(a.id))
		b.w.u32(secAliasFirst, at)
		b.w.u32(secAliasRows, a.entity)
		if a.odd {
			odd = append(odd, [2]uint32{a.entity, uint32(i)})
		}
	}
	slices.SortFunc(odd, func(x, y [2]uint32) int { return cmp.Compare(x[0], y[0]) })
	for _, o := range odd {
		b.w.u32(secOddRows, o[0], o[1])
	}
}

func boolCompare(x, y bool) int {
	switch {
	case x == y:
		return 0
	case x:
		return 1
	}
	return -1
}

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
