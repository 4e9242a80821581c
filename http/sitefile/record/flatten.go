package record

import (
	"errors"
	"fmt"
	"strings"
)

// MaxColumns is the most columns of a file, and the most different members with values of its objects.
const MaxColumns = 10_000

// The limits for the objects of a file: names of members in all, and bytes of a name.
const (
	maxNames     = 4 * MaxColumns
	maxNameBytes = 1000
)

// flattener makes values of the members of objects. Members of members are columns of their own, with names joined by dots. A list, and
// an object that stands for one value, are one value. Columns are those of all objects so far, in the order in which their members
// first came; an object that lacks a member has an empty value there.
type flattener struct {
	file       *File
	members    memberNode // of objects, and of features next to their properties
	properties memberNode // of features
	id         memberNode
	geometry   memberNode
	object     int     // how many objects were read
	values     []Value // of the object that is read
	used       int     // how many of them are
	names      int     // how many nodes there are
	parser     objectParser
}

// memberNode is a name in the tree of members. It has a column once it has a value that is not an object with members of its own. It may
// have both a column and children: a text in one record may be an object in another.
type memberNode struct {
	path     string
	column   int // from 1; 0 if there is none
	children map[string]*memberNode
	object   int // the last object that had it
}

// newFlattener makes the columns of a file, which grow with each object.
func newFlattener(f *File) *flattener {
	return &flattener{file: f, id: memberNode{path: "id"}, geometry: memberNode{path: "geometry"}}
}

// flatten returns the values of an object that begins on a line and is held by a member named key. A feature's properties are values
// like an object's members; its type and bounds are not.
func (f *flattener) flatten(object string, line int, key *string) ([]Value, error) {
	f.object++
	f.values, f.used = make([]Value, 0, f.used), 0 // most objects have the members of the one before
	f.parser = objectParser{text: object}
	err := f.flattenRecord(line, key)
	if err == nil && (len(f.file.columns) > MaxColumns || f.names > maxNames) {
		err = fmt.Errorf("the objects have more than %d different members: write what they list as a list", MaxColumns)
	}
	if err != nil {
		return nil, &LineError{line + strings.Count(object[:min(f.parser.pos, len(object))], "\n"), err.Error()}
	}
	return f.values[:f.used:f.used], nil
}

// flattenRecord flattens an object, or the parts of a feature.
func (f *flattener) flattenRecord(line int, key *string) error {
	if f.parser.peek() != '{' {
		return errors.New("this is no JSON object: write each place as an object with named members")
	}
	if key != nil {
		f.set(&f.id, FeatureID, Value{Text: *key})
	}
	members, err := f.parser.listMembers()
	if err != nil {
		return err
	}
	if isFeature(f.parser.text, members) {
		return f.flattenFeature(line, members)
	}
	for _, m := range members {
		f.parser.pos = m.start
		if err := f.flattenMember(&f.members, m.name, 1); err != nil {
			return err
		}
	}
	return nil
}

// flattenFeature flattens a feature. Members outside the GeoJSON standard are values like its properties.
func (f *flattener) flattenFeature(line int, members []member) error {
	hasGeometry := false
	for _, m := range members {
		f.parser.pos = m.start
		var err error
		switch m.name {
		case "type", "bbox":
		case "id":
			err = f.setNext(&f.id, FeatureID)
		case "geometry":
			hasGeometry = f.parser.peek() == '{'
			err = f.setNext(&f.geometry, Geometry)
		case "properties":
			err = f.flattenProperties()
		default:
			err = f.flattenMember(&f.members, m.name, 1)
		}
		if err != nil {
			return err
		}
	}
	if !hasGeometry {
		f.file.info.NullGeometries.Add(line)
	}
	return nil
}

// flattenProperties flattens the properties of a feature, and ignores null and other values.
func (f *flattener) flattenProperties() error {
	if f.parser.peek() != '{' {
		return nil
	}
	return f.flattenMembers(&f.properties, 0)
}

// flattenMembers flattens the members of the next object.
func (f *flattener) flattenMembers(node *memberNode, depth int) error {
	return f.parser.eachMember(func(name string) error {
		return f.flattenMember(node, name, depth+1)
	})
}

// flattenMember sets the next value, or those of its members. The last of several members with one name counts.
func (f *flattener) flattenMember(parent *memberNode, name string, depth int) error {
	node, err := f.child(parent, name)
	if err != nil {
		return err
	}
	// The same member came before in this object. Its earlier values no longer count, even if it was an object.
	if node.object == f.object {
		f.clear(node)
	}
	node.object = f.object
	if tags := f.parser.listTags(); tags != nil {
		return f.flattenTags(node, tags)
	}
	if f.parser.peek() != '{' || depth >= maxDepth || isKeptWhole(name) || f.parser.nextIsGeometry() {
		return f.setNext(node, Property)
	}
	return f.flattenMembers(node, depth)
}

// flattenTags sets a value for each tag of a list; the key of the tag is its name.
func (f *flattener) flattenTags(node *memberNode, tags []tag) error {
	end := f.parser.pos
	for _, t := range tags {
		f.parser.pos = t.value
		child, err := f.child(node, t.key)
		if err == nil {
			err = f.setNext(child, Property)
		}
		if err != nil {
			return err
		}
	}
	f.parser.pos = end
	return nil
}

// clear removes what a member set before.
func (f *flattener) clear(node *memberNode) {
	if node.column > 0 && node.column <= len(f.values) {
		f.values[node.column-1] = Value{}
	}
	for _, c := range node.children {
		f.clear(c)
	}
}

// setNext sets the next value of the text, whole.
func (f *flattener) setNext(node *memberNode, kind ColumnKind) error {
	v, err := f.parser.parseValue()
	if err == nil {
		f.set(node, kind, v)
	}
	return err
}

// set sets a value. The first of a node makes its column.
func (f *flattener) set(node *memberNode, kind ColumnKind, v Value) {
	if node.column == 0 {
		f.file.columns = append(f.file.columns, Column{node.path, kind})
		node.column = len(f.file.columns)
	}
	for len(f.values) < node.column {
		f.values = append(f.values, Value{})
	}
	f.values[node.column-1] = v
	f.used = max(f.used, node.column)
}

// child is the node of a member of a node.
func (f *flattener) child(n *memberNode, name string) (*memberNode, error) {
	if c, ok := n.children[name]; ok {
		return c, nil
	}
	if len(name) > maxNameBytes {
		return nil, fmt.Errorf("a name has more than %d bytes: names are for columns, values for texts", maxNameBytes)
	}
	if n.children == nil {
		n.children = map[string]*memberNode{}
	}
	c := &memberNode{path: trimName(name)}
	if n.path != "" {
		c.path = n.path + "." + c.path
	}
	n.children[strings.Clone(name)] = c
	f.names++
	return c, nil
}

// isKeptWhole reports whether an object of this name is one value: hours and free properties have a form of their own, and their members
// are days and names that the file's author chose.
func isKeptWhole(name string) bool {
	switch name {
	case "proprietes", "horaires", "opening_hours", "openingHoursSpecification":
		return true
	}
	return false
}

// isFeature reports whether an object is a GeoJSON feature: by its type, or because it has properties and a geometry.
func isFeature(text string, members []member) bool {
	properties, geometry := false, false
	for _, m := range members {
		switch m.name {
		case "type":
			return strings.HasPrefix(text[m.start:], `"Feature"`)
		case "properties":
			properties = true
		case "geometry":
			geometry = true
		}
	}
	return properties && geometry
}
