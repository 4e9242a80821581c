// Package osmpbf reads and writes OpenStreetMap data in the PBF format (https://wiki.openstreetmap.org/wiki/PBF_Format). It reads a
// country on all cores in bounded memory, and no file can make it panic or allocate as much as a hostile number asks for. A library
// exists (paulmach/osm, the oracle of the tests), but it makes an object of each element, cannot skip blobs on a second pass, and
// does not say what is damaged in a file or where.
//
//	file ── frames (walk) ──► task ── inflate, decodeBlock (all cores) ──► Block, in file order ──► visit
//	                                                               kinds of each blob ──► index ──► later Scans skip
//
//	Node, Way, Relation ── Writer ── encode, deflate ──► file
//
// A PBF is a sequence of blobs: the first holds the header, each other one a block of some thousand nodes, ways or relations,
// usually in this order.
package osmpbf

import (
	"iter"
	"time"
)

// Tag is one attribute of a node, way or relation.
type Tag struct{ Key, Value string }

// Tags are the attributes of one element, in file order. There are few, so a linear search is fastest. The strings of a block share
// one piece of memory: clone those that are kept for long.
type Tags []Tag

// Get returns the value of a key, or "" if the element does not have it.
func (t Tags) Get(key string) string {
	for i := range t {
		if t[i].Key == key {
			return t[i].Value
		}
	}
	return ""
}

// All yields keys and values.
func (t Tags) All() iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for i := range t {
			if !yield(t[i].Key, t[i].Value) {
				return
			}
		}
	}
}

// Len is the number of tags.
func (t Tags) Len() int { return len(t) }

// UnitsPerDegree is the unit of positions: a degree has this many.
const UnitsPerDegree = 10_000_000

// Node is a position. Lon and Lat are 1e-7 degrees.
type Node struct {
	ID       int64
	Lon, Lat int32
	Tags     Tags
}

// Way is a line through nodes. An extract may lack some of them.
type Way struct {
	ID    int64
	Nodes []int64
	Tags  Tags
}

// MemberType is what a member of a relation is.
type MemberType uint8

// The types of members, as the format numbers them.
const (
	NodeMember MemberType = iota
	WayMember
	RelationMember
)

// Member is an element of a relation and its role there.
type Member struct {
	Type MemberType
	ID   int64
	Role string
}

// Relation is a group of elements, such as the roads of a turn restriction.
type Relation struct {
	ID      int64
	Members []Member
	Tags    Tags
}

// Block is what one blob holds, in file order.
type Block struct {
	Nodes     []Node
	Ways      []Way
	Relations []Relation
}

// Kinds is a set of kinds of elements.
type Kinds uint8

// The kinds.
const (
	Nodes Kinds = 1 << iota
	Ways
	Relations
)

// Box is a rectangle in 1e-7 degrees.
type Box struct{ West, South, East, North int32 }

// Header is a file's description of itself. Missing values are zero.
type Header struct {
	Date      time.Time // of the data: osmosis_replication_timestamp
	Generator string    // the writing program
	Source    string
	Features  []string // that a reader must know, then optional ones
	Box       Box
}
