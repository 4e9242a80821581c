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
	"sort"
	"strconv"

	"github.com/google/uuid"

	"lieudit/queries/address/ban"
	"lieudit/queries/mappedfile"
)

// Entity is a row or a street: rows have their ordinal, streets follow after all rows.
type Entity uint32

// RowEntity is the entity of a row.
func RowEntity(row uint32) Entity { return Entity(row) }

// StreetEntity is the entity of a street.
func (v *Vintage) StreetEntity(street uint32) Entity { return Entity(uint32(v.Addresses) + street) }

// Row is the row of an entity; false for a street.
func (v *Vintage) Row(e Entity) (uint32, bool) { return uint32(e), int(e) < v.Addresses }

// StreetOfEntity is the street that an entity is, or the street of a row.
func (v *Vintage) StreetOfEntity(e Entity) uint32 {
	if row, ok := v.Row(e); ok {
		return v.StreetOf(row)
	}
	return uint32(e) - uint32(v.Addresses)
}

// uuidNamespace is the namespace of the UUIDs that the program generates: version 5 of the URL https://adresse.data.gouv.fr/.
func uuidNamespace() uuid.UUID {
	return uuid.UUID{0x4c, 0xb2, 0xbd, 0xf9, 0x8b, 0xe6, 0x58, 0x25, 0x89, 0xd5, 0x0f, 0x90, 0xcf, 0xcf, 0x69, 0x1e}
}

// uuidOfID is the UUID (version 5) that is generated from an id. It is not stored in the file.
func uuidOfID(space uuid.UUID, id string) uuid.UUID { return uuid.NewSHA1(space, []byte(id)) }

// rowID is the regular id of a row: the street's key, the number in five digits, the repetition index.
func rowID(key []byte, number uint32, rep []byte) string {
	id := make([]byte, 0, len(key)+len("_00000_")+len(rep))
	id = appendFiveDigits(append(append(id, key...), '_'), number)
	if len(rep) > 0 {
		id = append(append(id, '_'), rep...)
	}
	return string(id)
}

// FiveDigits writes a number as postcodes and ids have it, with zeros before it. A number above 99,999 has all its digits.
func FiveDigits(number uint32) string { return string(appendFiveDigits(make([]byte, 0, 10), number)) }

// appendFiveDigits appends FiveDigits to a text.
func appendFiveDigits(to []byte, number uint32) []byte {
	for least := uint32(10_000); least > 1 && number < least; least /= 10 {
		to = append(to, '0')
	}
	return strconv.AppendUint(to, uint64(number), 10)
}

// ID is the interoperability key of an entity.
func (v *Vintage) ID(e Entity) string {
	row, ok := v.Row(e)
	if !ok {
		return string(v.StreetKey(uint32(e) - uint32(v.Addresses)))
	}
	if alias, ok := v.irregularAlias(row); ok {
		return string(v.aliases.text(alias))
	}
	return rowID(v.StreetKey(v.StreetOf(row)), v.Number(row), v.Rep(row))
}

// irregularAlias is the alias that holds the id of a row whose id is not regular.
func (v *Vintage) irregularAlias(row uint32) (alias uint32, ok bool) {
	irregular := Column(v.sections[secIrregularRows])
	i := sort.Search(irregular.Len()/2, func(i int) bool { return irregular.At(2*i) >= row })
	return irregular.At(2*i + 1), i < irregular.Len()/2 && irregular.At(2*i) == row
}

// UUID is the id_ban of an entity.
func (v *Vintage) UUID(e Entity) uuid.UUID { return v.uuidInNamespace(uuidNamespace(), e) }

// uuidInNamespace is UUID for callers in a loop, which compute the namespace once.
func (v *Vintage) uuidInNamespace(space uuid.UUID, e Entity) uuid.UUID {
	if i, ok := v.storedUUID(e); ok {
		var u uuid.UUID
		copy(u[:], v.storedUUIDs.record(i))
		return u
	}
	return uuidOfID(space, v.ID(e))
}

// IsGenerated reports whether the program generated the id_ban of an entity, in this vintage or an earlier one, and not
// the base. A file of the first format does not store it. There the version of the UUID decides: generated ones have
// version 5, those of the base another.
func (v *Vintage) IsGenerated(e Entity) bool {
	i, isGiven := v.storedUUID(e)
	switch {
	case !isGiven:
		return true
	case v.Version() == firstFormat:
		u := v.storedUUIDs.record(i)
		return len(u) == 16 && u[6]>>4 == 5
	}
	_, ok := Column(v.sections[secGenerated]).indexOf(uint32(e))
	return ok
}

// storedUUID is the position of an entity's UUID among the stored ones. Entities without one have uuidOfID of their id.
func (v *Vintage) storedUUID(e Entity) (uint32, bool) {
	i, ok := Column(v.sections[secStoredUUIDEntities]).indexOf(uint32(e))
	return uint32(i), ok
}

// formerUUID is the i-th generated id_ban that its entity no longer has. Nearly all are uuidOfID of the entity's id;
// the others are stored.
func (v *Vintage) formerUUID(space uuid.UUID, i int) uuid.UUID {
	if given, ok := Column(v.sections[secFormerStored]).indexOf(uint32(i)); ok {
		var u uuid.UUID
		copy(u[:], v.formerUUIDs.record(uint32(given)))
		return u
	}
	return uuidOfID(space, v.ID(Entity(Column(v.sections[secFormerEntities]).At(i))))
}

// keyedEntity is an entity with the number that it is sorted by.
type keyedEntity struct {
	key    uint64
	entity uint32
}

func sortByKey(all []keyedEntity) {
	slices.SortFunc(all, func(x, y keyedEntity) int { return cmp.Or(cmp.Compare(x.key, y.key), cmp.Compare(x.entity, y.entity)) })
}

// identity is the id_ban of an entity, whether the program generated it, and the generated ones that it replaced.
type identity struct {
	uuid        uuid.UUID
	isGenerated bool
	formers     []uuid.UUID
}

// chooseIdentity chooses the id_ban of an entity: the one in the file, otherwise the predecessor's, otherwise the generated one.
// A generated id_ban stays findable when the base later brings its own.
func (b *builder) chooseIdentity(given string, generated uuid.UUID, previous predecessor) identity {
	chosen := identity{uuid: generated, isGenerated: true}
	if u, err := uuid.Parse(given); err == nil && u != uuid.Nil {
		chosen.uuid, chosen.isGenerated = u, false
	} else if previous.uuid != uuid.Nil {
		chosen.uuid, chosen.isGenerated = previous.uuid, previous.isGenerated
	}
	chosen.formers = slices.DeleteFunc(slices.Clone(previous.formers), func(u uuid.UUID) bool { return u == chosen.uuid })
	if previous.isGenerated && previous.uuid != chosen.uuid {
		chosen.formers = append(chosen.formers, previous.uuid)
	}
	return chosen
}

// generateUUID generates the UUID of an id. An id that belonged to another entity before gets a UUID that also depends
// on the previous vintage, so that no two entities have the same.
func (b *builder) generateUUID(id string, isReused bool) uuid.UUID {
	if isReused {
		id += " " + b.Previous.Digest()
	}
	return uuidOfID(b.namespace, id)
}

// identifyRow chooses the id_ban of a row and records the other ids that lead to it.
func (b *builder) identifyRow(s *streetRows, r *ban.Row, row uint32) {
	if !hasRegularID(r, s.key) {
		b.aliases = append(b.aliases, alias{id: r.ID, entity: row, isOwnID: true})
	}
	previous, isReused := predecessor{}, false
	if b.predecessors != nil {
		previous = b.predecessors.rows[r.ID]
		isReused = b.predecessors.isNew[r.ID] && b.predecessors.isReused(r.ID)
		b.addFormerIDs(previous, r.ID, row, false)
	}
	chosen, generated := b.chooseIdentity(r.IDBan, b.generateUUID(r.ID, isReused), previous), uuidOfID(b.namespace, r.ID)
	if chosen.uuid != generated {
		b.out.AppendU32(secStoredUUIDEntities, row)
		b.out.Append(secStoredUUIDs, chosen.uuid[:])
		if chosen.isGenerated {
			b.out.AppendU32(secGenerated, row)
		}
	}
	b.rowUUIDs.append(firstHalf(chosen.uuid), row)
	for _, u := range chosen.formers {
		b.rowFormers.append(firstHalf(u), row)
		if u != generated {
			b.storedFormers = append(b.storedFormers, storedFormer{uuid: u, entity: row})
		}
	}
}

// identifyStreet does the same for a street.
func (b *builder) identifyStreet(s *streetRows, street uint32) {
	previous, isReused, given := predecessor{}, false, ""
	if b.predecessors != nil {
		var found bool
		previous, found = b.predecessors.streets[s.key]
		isReused = !found && b.predecessors.isReused(s.key)
		b.addFormerIDs(previous, s.key, street, true)
	}
	if s.isLocality {
		given = s.rows[0].IDBan
	}
	chosen, generated := b.chooseIdentity(given, b.generateUUID(s.key, isReused), previous), uuidOfID(b.namespace, s.key)
	if chosen.uuid != generated {
		b.storedStreetUUIDs = append(b.storedStreetUUIDs, storedStreetUUID{street, chosen.uuid, chosen.isGenerated})
	}
	b.streetUUIDs = append(b.streetUUIDs, firstHalf(chosen.uuid))
	for _, u := range chosen.formers {
		b.streetFormers = append(b.streetFormers, keyedEntity{firstHalf(u), street})
		if u != generated {
			b.storedFormers = append(b.storedFormers, storedFormer{uuid: u, entity: street, isStreet: true})
		}
	}
}

// firstHalf is the first half of a UUID, by which UUIDs are sorted.
func firstHalf(u uuid.UUID) uint64 { return binary.BigEndian.Uint64(u[:8]) }

// addFormerIDs makes the ids of the predecessor lead to its successor.
func (b *builder) addFormerIDs(previous predecessor, id string, entity uint32, isStreet bool) {
	for _, old := range previous.ids {
		if old != id {
			b.aliases = append(b.aliases, alias{id: old, entity: entity, isStreet: isStreet})
		}
	}
	if len(previous.ids) > 0 && previous.ids[0] != id && !isStreet {
		b.summary.Inherited++
	}
}

// writeIdentity writes the order of the UUIDs and the aliases. It runs when the number of rows is known.
func (b *builder) writeIdentity(ctx context.Context) error {
	rows := uint32(b.summary.Addresses)
	for _, o := range b.storedStreetUUIDs {
		b.out.AppendU32(secStoredUUIDEntities, rows+o.street)
		b.out.Append(secStoredUUIDs, o.uuid[:])
		if o.isGenerated {
			b.out.AppendU32(secGenerated, rows+o.street)
		}
	}
	b.writeAliases(rows)
	all, err := b.rowUUIDs.readAll(len(b.streetUUIDs))
	if err != nil {
		return err
	}
	for i, key := range b.streetUUIDs {
		all = append(all, keyedEntity{key, rows + uint32(i)})
	}
	sortByKey(all)
	for _, k := range all {
		b.out.AppendU32(secByUUID, k.entity)
	}
	return errors.Join(b.writeFormers(rows), ctx.Err())
}

// writeFormers writes the generated id_ban that were replaced, and stores those that cannot be generated again.
func (b *builder) writeFormers(rows uint32) error {
	all, err := b.rowFormers.readAll(len(b.streetFormers))
	if err != nil {
		return err
	}
	for _, f := range b.streetFormers {
		all = append(all, keyedEntity{f.key, rows + f.entity})
	}
	given := map[keyedEntity]uuid.UUID{}
	for _, f := range b.storedFormers {
		if f.isStreet {
			f.entity += rows
		}
		given[keyedEntity{firstHalf(f.uuid), f.entity}] = f.uuid
	}
	sortByKey(all)
	for i, k := range all {
		b.out.AppendU32(secFormerEntities, k.entity)
		if u, ok := given[k]; ok {
			b.out.AppendU32(secFormerStored, uint32(i))
			b.out.Append(secFormerUUIDs, u[:])
		}
	}
	return nil
}

// keyFile keeps the sort keys of rows on disk until the last row.
type keyFile struct {
	file *os.File
	w    *bufio.Writer
	n    int
	err  error // the first error
}

func newKeyFile(path string) (*keyFile, error) {
	file, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	return &keyFile{file: file, w: bufio.NewWriterSize(mappedfile.NewPacedWriter(file, 0), 1<<20)}, nil
}

func (k *keyFile) close() error { return k.file.Close() }

// append writes the key of a row.
func (k *keyFile) append(key uint64, row uint32) {
	var buf [12]byte
	binary.LittleEndian.PutUint64(buf[:], key)
	binary.LittleEndian.PutUint32(buf[8:], row)
	_, err := k.w.Write(buf[:])
	k.n++
	if k.err == nil {
		k.err = err
	}
}

// readAll returns all keys in a slice with room for some more.
func (k *keyFile) readAll(more int) ([]keyedEntity, error) {
	if err := errors.Join(k.err, k.w.Flush()); err != nil {
		return nil, err
	}
	if _, err := k.file.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	all := make([]keyedEntity, k.n, k.n+more)
	r := bufio.NewReaderSize(k.file, 1<<20)
	var buf [12]byte
	for i := range all {
		if _, err := io.ReadFull(r, buf[:]); err != nil {
			return nil, err
		}
		all[i] = keyedEntity{binary.LittleEndian.Uint64(buf[:]), binary.LittleEndian.Uint32(buf[8:])}
	}
	return all, nil
}

// writeAliases writes the irregular and the former ids, sorted. An id of two entities leads to the one that now has it,
// otherwise to the first.
func (b *builder) writeAliases(rows uint32) {
	for i := range b.aliases {
		if a := &b.aliases[i]; a.isStreet {
			a.entity += rows
		}
	}
	slices.SortFunc(b.aliases, func(x, y alias) int {
		return cmp.Or(cmp.Compare(x.id, y.id), -compareBools(x.isOwnID, y.isOwnID), cmp.Compare(x.entity, y.entity))
	})
	b.aliases = slices.CompactFunc(b.aliases, func(x, y alias) bool { return x.id == y.id && !y.isOwnID })
	at := uint32(0)
	b.out.AppendU32(secAliasFirst, at)
	var irregular [][2]uint32
	for i, a := range b.aliases {
		b.out.Append(secAliasText, []byte(a.id))
		at += uint32(len(a.id))
		b.out.AppendU32(secAliasFirst, at)
		b.out.AppendU32(secAliasEntities, a.entity)
		if a.isOwnID {
			irregular = append(irregular, [2]uint32{a.entity, uint32(i)})
		}
	}
	slices.SortFunc(irregular, func(x, y [2]uint32) int { return cmp.Compare(x[0], y[0]) })
	for _, o := range irregular {
		b.out.AppendU32(secIrregularRows, o[0], o[1])
	}
}

func compareBools(x, y bool) int {
	switch {
	case x == y:
		return 0
	case x:
		return 1
	}
	return -1
}
