package vintage

import (
	"bytes"
	"fmt"
	"sort"
	"strconv"
	"strings"

	"github.com/google/uuid"
)

// Entity is a row, or a street after all the rows.
type Entity uint32

// RowEntity is a row as an entity.
func RowEntity(row uint32) Entity { return Entity(row) }

// StreetEntity is a street as an entity.
func (v *Vintage) StreetEntity(street uint32) Entity { return Entity(uint32(v.Addresses) + street) }

// Row is the row an entity is, if it is one.
func (v *Vintage) Row(e Entity) (uint32, bool) { return uint32(e), int(e) < v.Addresses }

// StreetOfEntity is the street an entity is, or the one that holds it.
func (v *Vintage) StreetOfEntity(e Entity) uint32 {
	if row, ok := v.Row(e); ok {
		return v.StreetOf(row)
	}
	return uint32(e) - uint32(v.Addresses)
}

// space is the namespace of the ids the program makes by itself.
func space() uuid.UUID {
	return uuid.NewSHA1(uuid.NameSpaceURL, []byte("https://adresse.data.gouv.fr/"))
}

// madeUUID is the UUID of an id that was given none.
func madeUUID(space uuid.UUID, id string) uuid.UUID { return uuid.NewSHA1(space, []byte(id)) }

// rowID is the regular id of a row: the street's key, the number in five digits, the repetition index.
func rowID(key []byte, number uint32, rep []byte) string {
	if len(rep) == 0 {
		return fmt.Sprintf("%s_%05d", key, number)
	}
	return fmt.Sprintf("%s_%05d_%s", key, number, rep)
}

// ID is the interoperability key of an entity.
func (v *Vintage) ID(e Entity) string {
	row, ok := v.Row(e)
	if !ok {
		return string(v.StreetKey(uint32(e) - uint32(v.Addresses)))
	}
	if alias, ok := v.odd(row); ok {
		return string(v.aliases.at(alias))
	}
	return rowID(v.StreetKey(v.StreetOf(row)), v.Number(row), v.Rep(row))
}

// odd is the alias that is the id of a row whose id is made otherwise than most are.
func (v *Vintage) odd(row uint32) (alias uint32, ok bool) {
	odd := Column(v.parts[secOddRows])
	i := sort.Search(odd.Len()/2, func(i int) bool { return odd.At(2*i) >= row })
	return odd.At(2*i + 1), i < odd.Len()/2 && odd.At(2*i) == row
}

// UUID is the id_ban of an entity.
func (v *Vintage) UUID(e Entity) uuid.UUID { return v.uuidIn(space(), e) }

func (v *Vintage) uuidIn(space uuid.UUID, e Entity) uuid.UUID {
	if i, ok := v.owner(e); ok {
		var u uuid.UUID
		copy(u[:], v.uuids.at(i))
		return u
	}
	return madeUUID(space, v.ID(e))
}

// IsInvented says whether the program made the id_ban of an entity, in this vintage or in an earlier one, and not the base.
// A file of the first format does not hold it. There the version of the UUID tells: those that are made are of version 5,
// and the base makes others.
func (v *Vintage) IsInvented(e Entity) bool {
	i, isGiven := v.owner(e)
	switch {
	case !isGiven:
		return true
	case v.format == firstFormat:
		u := v.uuids.at(i)
		return len(u) == 16 && u[6]>>4 == 5
	}
	_, ok := Column(v.parts[secInvented]).find(uint32(e))
	return ok
}

// owner is where the UUID stands that an entity was given, if it was.
func (v *Vintage) owner(e Entity) (uint32, bool) {
	i, ok := Column(v.parts[secUUIDOwners]).find(uint32(e))
	return uint32(i), ok
}

// ByID finds what an id names, or named in an earlier vintage.
func (v *Vintage) ByID(id string) (Entity, bool) {
	if s, ok := v.streetByKey(id); ok {
		return v.StreetEntity(s), true
	}
	if e, ok := v.regular(id); ok {
		return e, true
	}
	return v.byAlias(id)
}

// byAlias finds what an irregular id names, or one of an earlier vintage.
func (v *Vintage) byAlias(id string) (Entity, bool) {
	i := sort.Search(v.aliases.len(), func(i int) bool { return string(v.aliases.at(uint32(i))) >= id })
	if i < v.aliases.len() && string(v.aliases.at(uint32(i))) == id {
		return Entity(Column(v.parts[secAliasRows]).At(i)), true
	}
	return 0, false
}

func (v *Vintage) streetByKey(key string) (uint32, bool) {
	byKey := Column(v.parts[secStreetsByKey])
	i := v.searchKey(key)
	if i == byKey.Len() || string(v.StreetKey(byKey.At(i))) != key {
		return 0, false
	}
	return byKey.At(i), true
}

func (v *Vintage) searchKey(key string) int {
	byKey := Column(v.parts[secStreetsByKey])
	return sort.Search(byKey.Len(), func(i int) bool {
		return bytes.Compare(v.StreetKey(byKey.At(i)), []byte(key)) >= 0
	})
}

// regular finds a row by an id that is made like most are.
func (v *Vintage) regular(id string) (Entity, bool) {
	key, number, rep, ok := splitID(id)
	if !ok {
		return 0, false
	}
	byKey := Column(v.parts[secStreetsByKey])
	for i := v.searchKey(key); i < byKey.Len() && string(v.StreetKey(byKey.At(i))) == key; i++ {
		s := v.Street(byKey.At(i))
		for row := v.FirstNumber(s, number); row < s.To && v.Number(row) == number; row++ {
			if string(v.Rep(row)) == rep && v.ID(RowEntity(row)) == id {
				return RowEntity(row), true
			}
		}
	}
	return 0, false
}

// splitID cuts a regular id into the street's key, the number and the repetition index.
func splitID(id string) (key string, number uint32, rep string, ok bool) {
	parts := strings.SplitN(id, "_", 4)
	if len(parts) < 3 || len(parts[2]) != 5 {
		return "", 0, "", false
	}
	n, err := strconv.ParseUint(parts[2], 10, 16)
	if err != nil {
		return "", 0, "", false
	}
	if len(parts) == 4 {
		rep = parts[3]
	}
	return id[:len(parts[0])+1+len(parts[1])], uint32(n), rep, true
}

// FirstNumber is the first row of a street with that number or a higher one.
func (v *Vintage) FirstNumber(s Street, number uint32) uint32 {
	n := sort.Search(int(s.To-s.From), func(i int) bool { return v.Number(s.From+uint32(i)) >= number })
	return s.From + uint32(n)
}

// ByUUID finds what an id_ban names: that of an entity, else one that the program made for it before the base gave its own.
func (v *Vintage) ByUUID(u uuid.UUID) (Entity, bool) {
	if u == uuid.Nil { // which the base writes where it has none
		return 0, false
	}
	space, own, former := space(), Column(v.parts[secByUUID]), Column(v.parts[secFormerEntities])
	if i, ok := searchUUID(own.Len(), u, func(i int) uuid.UUID { return v.uuidIn(space, Entity(own.At(i))) }); ok {
		return Entity(own.At(i)), true
	}
	if i, ok := searchUUID(former.Len(), u, func(i int) uuid.UUID { return v.formerUUID(space, i) }); ok {
		return Entity(former.At(i)), true
	}
	return 0, false
}

// searchUUID finds a UUID among n that are sorted by their first halves.
func searchUUID(n int, u uuid.UUID, at func(int) uuid.UUID) (int, bool) {
	half := func(i int) int {
		other := at(i)
		return bytes.Compare(other[:8], u[:8])
	}
	for i := sort.Search(n, func(i int) bool { return half(i) >= 0 }); i < n && half(i) == 0; i++ {
		if at(i) == u {
			return i, true
		}
	}
	return 0, false
}

// formerUUID is an id_ban that the program made and that its entity has no more. Nearly all are made of the id that the
// entity still has; the others stand in the file.
func (v *Vintage) formerUUID(space uuid.UUID, i int) uuid.UUID {
	if given, ok := Column(v.parts[secFormerGiven]).find(uint32(i)); ok {
		var u uuid.UUID
		copy(u[:], v.formers.at(uint32(given)))
		return u
	}
	return madeUUID(space, v.ID(Entity(Column(v.parts[secFormerEntities]).At(i))))
}
