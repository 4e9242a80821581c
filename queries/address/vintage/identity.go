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
	if odd := Column(v.parts[secOddRows]); odd.Len() > 0 {
		i := sort.Search(odd.Len()/2, func(i int) bool { return odd.At(2*i) >= row })
		if i < odd.Len()/2 && odd.At(2*i) == row {
			return string(v.aliases.at(odd.At(2*i + 1)))
		}
	}
	return rowID(v.StreetKey(v.StreetOf(row)), v.Number(row), v.Rep(row))
}

// UUID is the id_ban of an entity.
func (v *Vintage) UUID(e Entity) uuid.UUID { return v.uuidIn(space(), e) }

func (v *Vintage) uuidIn(space uuid.UUID, e Entity) uuid.UUID {
	owners := Column(v.parts[secUUIDOwners])
	i := sort.Search(owners.Len(), func(i int) bool { return owners.At(i) >= uint32(e) })
	if i < owners.Len() && owners.At(i) == uint32(e) {
		var u uuid.UUID
		copy(u[:], v.uuids.at(uint32(i)))
		return u
	}
	return madeUUID(space, v.ID(e))
}

// ByID finds what an id names, or named in an earlier vintage.
func (v *Vintage) ByID(id string) (Entity, bool) {
	if s, ok := v.streetByKey(id); ok {
		return v.StreetEntity(s), true
	}
	if e, ok := v.regular(id); ok {
		return e, true
	}
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

// ByUUID finds what an id_ban names.
func (v *Vintage) ByUUID(u uuid.UUID) (Entity, bool) {
	byUUID, space := Column(v.parts[secByUUID]), space()
	half := func(i int) int {
		at := v.uuidIn(space, Entity(byUUID.At(i)))
		return bytes.Compare(at[:8], u[:8])
	}
	for i := sort.Search(byUUID.Len(), func(i int) bool { return half(i) >= 0 }); i < byUUID.Len() && half(i) == 0; i++ {
		if e := Entity(byUUID.At(i)); v.uuidIn(space, e) == u {
			return e, true
		}
	}
	return 0, false
}
