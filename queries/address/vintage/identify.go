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

// identity is the id_ban of a row or street, whether the program made it, and those that it made before.
type identity struct {
	uuid     uuid.UUID
	invented bool
	formers  []uuid.UUID
}

// identify settles an id_ban: the one that the file gives, else the predecessor's, else one that is made of the id. What
// was made once goes on leading here when the base brings its own.
func (b *builder) identify(given string, made uuid.UUID, was former) identity {
	is := identity{uuid: made, invented: true}
	if u, err := uuid.Parse(given); err == nil && u != uuid.Nil {
		is.uuid, is.invented = u, false
	} else if was.uuid != uuid.Nil {
		is.uuid, is.invented = was.uuid, was.invented
	}
	is.formers = slices.DeleteFunc(slices.Clone(was.formers), func(u uuid.UUID) bool { return u == is.uuid })
	if was.invented && was.uuid != is.uuid {
		is.formers = append(is.formers, was.uuid)
	}
	return is
}

// inventUUID is the UUID of an id that was given none. One that was another's once is made with the vintage before, so
// that no two have the same.
func (b *builder) inventUUID(id string, isReused bool) uuid.UUID {
	if isReused {
		id += " " + b.Previous.Digest()
	}
	return madeUUID(b.space, id)
}

// identifyRow settles the id_ban of a row, and by which other ids it is found.
func (b *builder) identifyRow(s *gathered, r *ban.Row, row uint32) {
	if !regular(r, s.key) {
		b.aliases = append(b.aliases, alias{id: r.ID, entity: row, odd: true})
	}
	was, isReused := former{}, false
	if b.prior != nil {
		was = b.prior.rows[r.ID]
		isReused = b.prior.fresh[r.ID] && b.prior.isReused(r.ID)
		b.rename(was, r.ID, row, false)
	}
	is, made := b.identify(r.IDBan, b.inventUUID(r.ID, isReused), was), madeUUID(b.space, r.ID)
	if is.uuid != made {
		b.w.u32(secUUIDOwners, row)
		b.w.bytes(secUUIDs, is.uuid[:])
		if is.invented {
			b.w.u32(secInvented, row)
		}
	}
	b.uuids.add(halfOf(is.uuid), row)
	for _, u := range is.formers {
		b.formers.add(halfOf(u), row)
		if u != made {
			b.givenFormers = append(b.givenFormers, givenFormer{uuid: u, entity: row})
		}
	}
}

// identifyStreet does the same for a street.
func (b *builder) identifyStreet(s *gathered, street uint32) {
	was, isReused, given := former{}, false, ""
	if b.prior != nil {
		var found bool
		was, found = b.prior.streets[s.key]
		isReused = !found && b.prior.isReused(s.key)
		b.rename(was, s.key, street, true)
	}
	if s.locality {
		given = s.rows[0].IDBan
	}
	is, made := b.identify(given, b.inventUUID(s.key, isReused), was), madeUUID(b.space, s.key)
	if is.uuid != made {
		b.owners = append(b.owners, owned{street, is.uuid, is.invented})
	}
	b.streetUUIDs = append(b.streetUUIDs, halfOf(is.uuid))
	for _, u := range is.formers {
		b.streetFormers = append(b.streetFormers, keyed{halfOf(u), street})
		if u != made {
			b.givenFormers = append(b.givenFormers, givenFormer{uuid: u, entity: street, street: true})
		}
	}
}

// halfOf is the first half of a UUID, by which they are sorted.
func halfOf(u uuid.UUID) uint64 { return binary.BigEndian.Uint64(u[:8]) }

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

// writeIdentity writes the order of the UUIDs and the ids that lead to other entities than they say.
func (b *builder) writeIdentity(ctx context.Context) error {
	rows := uint32(b.summary.Addresses)
	for _, o := range b.owners {
		b.w.u32(secUUIDOwners, rows+o.entity)
		b.w.bytes(secUUIDs, o.uuid[:])
		if o.invented {
			b.w.u32(secInvented, rows+o.entity)
		}
	}
	b.writeAliases(rows)
	all, err := b.uuids.read(len(b.streetUUIDs))
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
	return errors.Join(b.writeFormers(rows), ctx.Err())
}

// writeFormers writes the id_ban that the program made and that were replaced, with the UUIDs that no id makes any more.
func (b *builder) writeFormers(rows uint32) error {
	all, err := b.formers.read(len(b.streetFormers))
	if err != nil {
		return err
	}
	for _, f := range b.streetFormers {
		all = append(all, keyed{f.key, rows + f.entity})
	}
	given := map[keyed]uuid.UUID{}
	for _, f := range b.givenFormers {
		if f.street {
			f.entity += rows
		}
		given[keyed{halfOf(f.uuid), f.entity}] = f.uuid
	}
	sortKeyed(all)
	for i, k := range all {
		b.w.u32(secFormerEntities, k.entity)
		if u, ok := given[k]; ok {
			b.w.u32(secFormerGiven, uint32(i))
			b.w.bytes(secFormerUUIDs, u[:])
		}
	}
	return nil
}

// keyFile keeps keys of rows on disk until all are known.
type keyFile struct {
	file *os.File
	w    *bufio.Writer
	n    int
	err  error // the first that happened
}

func newKeyFile(path string) (*keyFile, error) {
	file, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	return &keyFile{file: file, w: bufio.NewWriterSize(&paced{file: file}, 1<<20)}, nil
}

func (k *keyFile) close() error { return k.file.Close() }

func (k *keyFile) add(key uint64, row uint32) {
	var buf [12]byte
	binary.LittleEndian.PutUint64(buf[:], key)
	binary.LittleEndian.PutUint32(buf[8:], row)
	_, err := k.w.Write(buf[:])
	k.n++
	if k.err == nil {
		k.err = err
	}
}

// read gives all keys back, in a slice that has room for some more.
func (k *keyFile) read(more int) ([]keyed, error) {
	if err := errors.Join(k.err, k.w.Flush()); err != nil {
		return nil, err
	}
	if _, err := k.file.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	all := make([]keyed, k.n, k.n+more)
	r := bufio.NewReaderSize(k.file, 1<<20)
	var buf [12]byte
	for i := range all {
		if _, err := io.ReadFull(r, buf[:]); err != nil {
			return nil, err
		}
		all[i] = keyed{binary.LittleEndian.Uint64(buf[:]), binary.LittleEndian.Uint32(buf[8:])}
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
