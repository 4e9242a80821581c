package osmpbf

import (
	"math"

	"google.golang.org/protobuf/encoding/protowire"
)

// The limits of a block. Programs write 8,000 elements per block; the limits keep a hostile block from exhausting memory.
const (
	maxElements = 1 << 20
	maxTags     = 1 << 22
	maxRefs     = 1 << 23
	maxMembers  = 1 << 21
	maxStrings  = 1 << 21
)

// decoder decodes blocks. It reuses its memory for the next block.
type decoder struct {
	strings     []string
	granularity int64 // nanodegrees
	lon, lat    int64 // offsets in nanodegrees
	most        int64 // the greatest number of a position that cannot overflow

	block   Block
	tags    []Tag
	refs    []int64
	members []Member
}

// decodeBlock decodes the wanted kinds of elements into d.block and returns the kinds in the block.
func (d *decoder) decodeBlock(b []byte, wanted Kinds) (Kinds, error) {
	d.granularity, d.lon, d.lat = 100, 0, 0
	d.block = Block{d.block.Nodes[:0], d.block.Ways[:0], d.block.Relations[:0]}
	d.tags, d.refs, d.members, d.strings = d.tags[:0], d.refs[:0], d.members[:0], d.strings[:0]
	// A block without wanted kinds is not decoded further; the first Scan learns its kinds nevertheless.
	kinds, err := findKinds(b)
	if err != nil || kinds&wanted == 0 {
		return kinds, err
	}
	// The numbers that say how to read the groups come after them.
	m := fields{rest: b}
	for m.next() && err == nil {
		switch m.tag {
		case 1<<3 | length:
			err = d.decodeStrings(m.bytes)
		case 17<<3 | varint:
			d.granularity = int64(int32(m.value))
		case 19<<3 | varint:
			d.lat = int64(m.value)
		case 20<<3 | varint:
			d.lon = int64(m.value)
		}
	}
	d.lon, d.lat = clampOffset(d.lon), clampOffset(d.lat)
	d.most = maxOffset / max(d.granularity, -d.granularity, 1)
	for m = (fields{rest: b}); err == nil && m.next(); {
		if m.tag == 2<<3|length {
			err = d.decodeGroup(m.bytes, wanted)
		}
	}
	return kinds, err
}

// findKinds returns the kinds of elements in a block.
func findKinds(b []byte) (kinds Kinds, err error) {
	m := fields{rest: b}
	for m.next() {
		if m.tag != 2<<3|length {
			continue
		}
		group := fields{rest: m.bytes}
		for group.next() {
			switch group.tag {
			case 1<<3 | length, 2<<3 | length:
				kinds |= Nodes
			case 3<<3 | length:
				kinds |= Ways
			case 4<<3 | length:
				kinds |= Relations
			}
		}
		if group.err != nil {
			return kinds, group.err
		}
	}
	return kinds, m.err
}

// decodeStrings decodes the table of strings. All share one copy of it, which outlives the buffer.
func (d *decoder) decodeStrings(b []byte) error {
	// Field tags and lengths between the strings are copied too: they are only a few bytes, and one allocation serves all.
	text := string(b)
	m := fields{rest: b}
	for m.next() {
		if m.tag == 1<<3|length {
			end := len(b) - len(m.rest)
			d.strings = append(d.strings, text[end-len(m.bytes):end])
		}
		if len(d.strings) > maxStrings {
			return errTooMany
		}
	}
	return m.err
}

// decodeGroup decodes the wanted kinds of elements of a group.
func (d *decoder) decodeGroup(b []byte, wanted Kinds) (err error) {
	m := fields{rest: b}
	for err == nil && m.next() {
		switch {
		case m.tag == 1<<3|length && wanted&Nodes != 0:
			err = d.decodeNode(m.bytes)
		case m.tag == 2<<3|length && wanted&Nodes != 0:
			err = d.decodeDense(m.bytes)
		case m.tag == 3<<3|length && wanted&Ways != 0:
			err = d.decodeWay(m.bytes)
		case m.tag == 4<<3|length && wanted&Relations != 0:
			err = d.decodeRelation(m.bytes)
		}
		if len(d.block.Nodes) > maxElements || len(d.block.Ways) > maxElements || len(d.block.Relations) > maxElements {
			return errTooMany
		}
	}
	if err == nil {
		err = m.err
	}
	return err
}

// decodeNode decodes a node that stands alone.
func (d *decoder) decodeNode(b []byte) error {
	var keys, values packed
	var id, lon, lat int64
	m := fields{rest: b}
	for m.next() {
		switch m.tag {
		case 1<<3 | varint:
			id = protowire.DecodeZigZag(m.value)
		case 2<<3 | length:
			keys = m.bytes
		case 3<<3 | length:
			values = m.bytes
		case 8<<3 | varint:
			lat = protowire.DecodeZigZag(m.value)
		case 9<<3 | varint:
			lon = protowire.DecodeZigZag(m.value)
		}
	}
	if m.err != nil {
		return m.err
	}
	tags, err := d.decodeTags(keys, values)
	d.addNode(id, lon, lat, tags)
	return err
}

// addNode adds a node. A node with an impossible position is left out, as if an extract lacked it.
func (d *decoder) addNode(id, lon, lat int64, tags Tags) {
	x, y := d.lon+d.granularity*lon, d.lat+d.granularity*lat
	const turn = 180_000_000_000
	if max(lon, -lon, lat, -lat) > d.most || min(lon, lat) == math.MinInt64 {
		return
	}
	if x < -turn || x > turn || y < -turn/2 || y > turn/2 {
		return
	}
	d.block.Nodes = append(d.block.Nodes, Node{id, toUnits(x), toUnits(y), tags})
}

// maxOffset is greater than any valid offset, and twice as much does not overflow.
const maxOffset = 1 << 61

// clampOffset keeps an offset within maxOffset. No position beyond it is on the globe.
func clampOffset(v int64) int64 { return max(-maxOffset, min(v, maxOffset)) }

// toUnits rounds nanodegrees to 1e-7 degrees.
func toUnits(nano int64) int32 {
	if nano%100 == 0 {
		return int32(nano / 100)
	}
	return int32(math.Round(float64(nano) / 100))
}

// decodeDense decodes nodes as lists of differences.
func (d *decoder) decodeDense(b []byte) error {
	var ids, lons, lats, pairs packed
	m := fields{rest: b}
	for m.next() {
		switch m.tag {
		case 1<<3 | length:
			ids = m.bytes
		case 8<<3 | length:
			lats = m.bytes
		case 9<<3 | length:
			lons = m.bytes
		case 10<<3 | length:
			pairs = m.bytes
		}
	}
	if m.err != nil {
		return m.err
	}
	var id, lon, lat int64
	for len(ids) > 0 {
		i, ok1 := ids.nextSigned()
		x, ok2 := lons.nextSigned()
		y, ok3 := lats.nextSigned()
		if !ok1 || !ok2 || !ok3 {
			return errLists
		}
		id, lon, lat = id+i, lon+x, lat+y
		tags, err := d.decodeDenseTags(&pairs)
		if err != nil {
			return err
		}
		if d.addNode(id, lon, lat, tags); len(d.block.Nodes) > maxElements {
			return errTooMany
		}
	}
	if len(lons) > 0 || len(lats) > 0 || len(pairs) > 0 {
		return errLists
	}
	return nil
}

// decodeDenseTags takes the tags of the next node: keys and values in turn up to a zero. If the list is missing, no node has tags.
func (d *decoder) decodeDenseTags(pairs *packed) (Tags, error) {
	if len(*pairs) == 0 {
		return nil, nil
	}
	from := len(d.tags) // tags of all elements share a slice; those returned before stay valid if it grows
	for {
		key, ok := pairs.next()
		if !ok {
			return nil, errLists
		}
		if key == 0 {
			return d.tags[from:len(d.tags):len(d.tags)], nil
		}
		value, ok := pairs.next()
		if !ok {
			return nil, errLists
		}
		if err := d.addTag(key, value); err != nil {
			return nil, err
		}
	}
}

// addTag adds a tag by the numbers of its strings.
func (d *decoder) addTag(key, value uint64) error {
	if key >= uint64(len(d.strings)) || value >= uint64(len(d.strings)) {
		return errStrings
	}
	if len(d.tags) > maxTags {
		return errTooMany
	}
	d.tags = append(d.tags, Tag{d.strings[key], d.strings[value]})
	return nil
}

// decodeTags decodes tags from a list of keys and one of values.
func (d *decoder) decodeTags(keys, values packed) (Tags, error) {
	from := len(d.tags)
	for len(keys) > 0 {
		key, ok := keys.next()
		value, ok2 := values.next()
		if !ok || !ok2 {
			return nil, errLists
		}
		if err := d.addTag(key, value); err != nil {
			return nil, err
		}
	}
	return d.tags[from:len(d.tags):len(d.tags)], values.end()
}

// decodeWay decodes a way. Positions of its nodes, which some files repeat in it (LocationsOnWays), are skipped.
func (d *decoder) decodeWay(b []byte) error {
	var keys, values, refs packed
	w := Way{}
	m := fields{rest: b}
	for m.next() {
		switch m.tag {
		case 1<<3 | varint:
			w.ID = int64(m.value)
		case 2<<3 | length:
			keys = m.bytes
		case 3<<3 | length:
			values = m.bytes
		case 8<<3 | length:
			refs = m.bytes
		}
	}
	if m.err != nil {
		return m.err
	}
	from, id := len(d.refs), int64(0)
	for len(refs) > 0 {
		step, ok := refs.nextSigned()
		if !ok {
			return errLists
		}
		id += step
		d.refs = append(d.refs, id)
	}
	if len(d.refs) > maxRefs {
		return errTooMany
	}
	w.Nodes = d.refs[from:len(d.refs):len(d.refs)]
	var err error
	w.Tags, err = d.decodeTags(keys, values)
	d.block.Ways = append(d.block.Ways, w)
	return err
}

// decodeRelation decodes a relation.
func (d *decoder) decodeRelation(b []byte) error {
	var keys, values, roles, ids, types packed
	r := Relation{}
	m := fields{rest: b}
	for m.next() {
		switch m.tag {
		case 1<<3 | varint:
			r.ID = int64(m.value)
		case 2<<3 | length:
			keys = m.bytes
		case 3<<3 | length:
			values = m.bytes
		case 8<<3 | length:
			roles = m.bytes
		case 9<<3 | length:
			ids = m.bytes
		case 10<<3 | length:
			types = m.bytes
		}
	}
	if m.err != nil {
		return m.err
	}
	var err error
	if r.Members, err = d.decodeMembers(roles, ids, types); err != nil {
		return err
	}
	r.Tags, err = d.decodeTags(keys, values)
	d.block.Relations = append(d.block.Relations, r)
	return err
}

// decodeMembers decodes the members of a relation from three lists, the IDs as differences.
func (d *decoder) decodeMembers(roles, ids, types packed) ([]Member, error) {
	from, id := len(d.members), int64(0)
	for len(ids) > 0 {
		role, ok1 := roles.next()
		step, ok2 := ids.nextSigned()
		kind, ok3 := types.next()
		if !ok1 || !ok2 || !ok3 || kind > uint64(RelationMember) {
			return nil, errLists
		}
		if role >= uint64(len(d.strings)) {
			return nil, errStrings
		}
		id += step
		if d.members = append(d.members, Member{MemberType(kind), id, d.strings[role]}); len(d.members) > maxMembers {
			return nil, errTooMany
		}
	}
	if len(roles) > 0 || len(types) > 0 {
		return nil, errLists
	}
	return d.members[from:len(d.members):len(d.members)], nil
}
