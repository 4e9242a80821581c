package record

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"
)

// JSON comes in many shapes: a list of objects; an object around such a list, as services return it; an object of objects by id;
// objects one a line; the features of GeoJSON. All become records by the same two steps. findRecords walks through the text once and
// finds the records; objectReader then reads them, one at a time, as often as asked.

// openJSON finds the objects of a JSON text that are records: those of a list, those of an object of objects, or those that follow
// each other. It reads the text once to its end, so a file that breaks off is refused before its first record.
func openJSON(t *text, name string) (*File, error) {
	f := &File{}
	t.fillInfo(&f.info)
	list, err := findRecords(t, name, &f.info)
	if err != nil {
		return nil, err
	}
	objects := &objectReader{file: f, list: list, text: t, flat: newFlattener(f)}
	f.records = objects.yieldRecords
	return f, nil
}

// findRecords finds the list that holds the records, and fills info.
func findRecords(t *text, name string, info *Info) (objectList, error) {
	sequence := objectList{isSequence: true, line: 1}
	s := newJSONScanner(t.open())
	if first, err := s.peek(); err == nil && first == '{' && isSequenceName(name) {
		info.Format = NDJSON
		return sequence, nil
	}
	finder := listFinder{scanner: s, info: info}
	names, err := finder.walkValue(nil)
	if err != nil {
		return objectList{}, err
	}
	info.Format = JSON
	// The text after the first value distinguishes a file of one value from a sequence.
	switch _, err := s.peek(); {
	case err == nil && finder.isRootList:
		return objectList{}, &LineError{s.line, "something stands below the end of the list: take it out"}
	case err == nil:
		info.Format, info.CRS = NDJSON, ""
		return sequence, nil
	case err != io.EOF:
		return objectList{}, err
	}
	return finder.choose(names, sequence)
}

// isSequenceName reports whether the name of a file announces a sequence of objects. A single one would look like an object that holds
// a list.
func isSequenceName(name string) bool {
	return slices.Contains([]string{".ndjson", ".jsonl", ".geojsonl", ".geojsons", ".geojsonseq"}, strings.ToLower(path.Ext(name)))
}

// objectList is the location of the records in a JSON text.
type objectList struct {
	path       []string // the members that lead to it
	offset     int64    // of its opening bracket, in the decoded text
	line       int
	objects    int
	isKeyed    bool // an object of objects
	isSequence bool // objects one after the other, in no list
}

// name is the members that lead to the list, as Info has them.
func (l objectList) name() string { return strings.Join(l.path, ".") }

// listFinder walks through a JSON text and records the lists of objects in it. It looks into objects, but not into the objects of lists:
// those are records, and their lists are values. It holds names and counts, never a value, so a text of any length can be walked.
type listFinder struct {
	scanner    *jsonScanner
	info       *Info
	lists      []objectList // the longest first, at most maxLists
	rootType   string       // the text of the outermost member type
	isRootList bool
	valueLists int  // members of the outermost object that are lists without objects
	isNumbered bool // the outermost object holds objects whose names are row numbers
}

// Limits of what listFinder records and searches.
const (
	maxLists      = 10
	maxDepth      = 8  // below it objects stay whole
	maxAlikeNames = 50 // of an object that is compared with others
)

// choose returns the list to read: the features of a FeatureCollection, otherwise the longest one. An object without lists is a record.
func (f *listFinder) choose(names []string, sequence objectList) (objectList, error) {
	features := slices.IndexFunc(f.lists, func(l objectList) bool { return l.name() == "features" && !l.isKeyed })
	switch {
	case f.rootType == "Topology":
		return objectList{}, &FormatError{"this is TopoJSON: export it as GeoJSON"}
	case f.rootType == "FeatureCollection" && features >= 0:
		f.info.Format, f.info.List = GeoJSON, "features"
		return f.lists[features], nil
	case f.rootType == "FeatureCollection":
		return objectList{}, &FormatError{"this FeatureCollection has no list of features"}
	case f.rootType == "Feature":
		f.info.Format = GeoJSON
		return sequence, nil
	}
	if f.holdsColumns(names) {
		return objectList{}, &FormatError{"this JSON holds columns instead of objects: write a list of objects, one for each place"}
	}
	lists := slices.DeleteFunc(f.lists, func(l objectList) bool { return l.objects == 0 && len(l.path) > 0 })
	switch {
	case len(lists) == 0 && f.isRootList:
		return objectList{}, &FormatError{"this is a list of values that are no objects: write each place as an object with named members"}
	case len(lists) == 0 && len(names) == 0:
		return objectList{}, &FormatError{"this JSON holds no objects"}
	case len(lists) == 0:
		return sequence, nil
	}
	chosen := lists[0]
	f.info.List = chosen.name()
	for _, l := range lists[1:] {
		if !chosen.isKeyed || len(l.path) <= len(chosen.path) || !slices.Equal(l.path[:len(chosen.path)], chosen.path) {
			f.info.OtherLists = append(f.info.OtherLists, l.name())
		}
	}
	return chosen, nil
}

// holdsColumns reports whether the outermost object holds a list of values for each name, or an object of values by row number, as
// programs for tables write them.
func (f *listFinder) holdsColumns(names []string) bool {
	return len(names) > 1 && f.valueLists >= len(names) || f.isNumbered
}

// add records a list among the longest.
func (f *listFinder) add(l objectList) {
	at, _ := slices.BinarySearchFunc(f.lists, l.objects, func(have objectList, objects int) int {
		if have.objects >= objects {
			return -1
		}
		return 1
	})
	if l.path = slices.Clone(l.path); at < maxLists {
		f.lists = slices.Insert(f.lists, at, l)
		f.lists = f.lists[:min(len(f.lists), maxLists)]
	}
}

// walkValue walks through a value and records its lists. For an object it returns the first names.
func (f *listFinder) walkValue(path []string) ([]string, error) {
	s := f.scanner
	first, err := s.peek()
	switch {
	case err == io.EOF:
		return nil, s.endError()
	case err != nil:
		return nil, err
	case first == '[':
		f.isRootList = f.isRootList || len(path) == 0
		return nil, f.walkList(path)
	case first == '{' && len(path) < maxDepth:
		return f.walkObject(path)
	case len(path) == 1 && path[0] == "type" && first == '"':
		f.rootType, err = s.readText()
		return nil, err
	}
	return nil, s.skip()
}

// walkList counts the objects of a list, and records it if its only other values are null.
func (f *listFinder) walkList(path []string) error {
	s := f.scanner
	list, others := objectList{path: path, offset: s.offset(), line: s.line}, 0
	err := s.eachElement(func() error {
		switch first, err := s.peek(); {
		case err != nil:
			return err
		case first == '{':
			list.objects++
		case first != 'n':
			others++
		}
		return s.skip()
	})
	if err == nil && others == 0 {
		f.add(list)
	} else if len(path) == 1 {
		f.valueLists++
	}
	return err
}

// walkObject walks through the members of an object. It records the object itself as a list if all its members are similar objects.
func (f *listFinder) walkObject(path []string) (names []string, err error) {
	s := f.scanner
	list := objectList{path: path, offset: s.offset(), line: s.line, isKeyed: true}
	isAlike, firstNames := true, []string(nil)
	err = s.eachMember(func(name string) error {
		if len(names) < maxAlikeNames {
			names = append(names, name)
		}
		if isKeptWhole(name) {
			isAlike = false
			return s.skip()
		}
		// These two describe the list next to them, and are not part of an object of records.
		if len(path) == 0 && (name == "crs" || name == "spatialReference") {
			isAlike = false
			return f.readCRS()
		}
		// The names in its members distinguish a map of records by id from an object of various things.
		childNames, err := f.walkValue(append(path, name))
		list.objects++
		if list.objects == 1 {
			firstNames = childNames
		}
		isAlike = isAlike && areAlike(firstNames, childNames)
		return err
	})
	if isAlike && list.objects > 1 {
		f.add(list)
		f.isNumbered = f.isNumbered || len(path) == 0 && areRowNumbers(firstNames)
	}
	return names, err
}

// areRowNumbers reports whether names count from 0.
func areRowNumbers(names []string) bool {
	for i, name := range names {
		if name != strconv.Itoa(i) {
			return false
		}
	}
	return len(names) > 0
}

// areAlike reports whether two objects have half of their names in common.
func areAlike(a, b []string) bool {
	shared := 0
	for _, name := range b {
		if slices.Contains(a, name) {
			shared++
		}
	}
	return shared > 0 && 2*shared >= min(len(a), len(b))
}

// readCRS reads the reference system of GeoJSON of 2008, or of ESRI's JSON.
func (f *listFinder) readCRS() error {
	raw, err := f.scanner.readRaw()
	if err != nil {
		return err
	}
	var crs struct {
		Properties struct {
			Name string `json:"name"`
			Code any    `json:"code"`
		} `json:"properties"`
		WKID       int `json:"wkid"`
		LatestWKID int `json:"latestWkid"`
	}
	switch err := json.Unmarshal(raw, &crs); {
	case err != nil: // not of these forms: it is ignored
	case crs.Properties.Name != "":
		f.info.CRS = crs.Properties.Name
	case crs.Properties.Code != nil:
		f.info.CRS = fmt.Sprintf("EPSG:%v", crs.Properties.Code)
	case crs.LatestWKID != 0 || crs.WKID != 0:
		f.info.CRS = fmt.Sprintf("EPSG:%d", cmp.Or(crs.LatestWKID, crs.WKID))
	}
	return nil
}

// objectReader reads the records of a JSON text.
type objectReader struct {
	file *File
	list objectList
	text *text
	flat *flattener
}

// yieldRecords yields the objects of the list.
func (o *objectReader) yieldRecords(yield func(Record, error) bool) {
	o.file.info.NullGeometries = Count{}
	in := o.text.open()
	if _, err := io.CopyN(io.Discard, in, o.list.offset); err != nil {
		yield(Record{}, err)
		return
	}
	s := newJSONScanner(in)
	s.line = o.list.line
	if err := o.readAll(s, yield); err != nil && err != errStopped {
		yield(Record{}, err)
	}
}

// errStopped: the caller wants no more records.
var errStopped = errors.New("no more records are wanted")

// readAll reads the objects of the list, or those that follow each other.
func (o *objectReader) readAll(s *jsonScanner, yield func(Record, error) bool) error {
	read := func(key *string) error {
		_, err := s.peek()
		if err != nil {
			return err
		}
		line := s.line
		raw, err := s.readRaw()
		if err != nil || string(raw) == "null" {
			return err
		}
		values, err := o.flat.flatten(string(raw), line, key)
		if err != nil {
			return err
		}
		if !yield(Record{Line: line, Values: values}, nil) {
			return errStopped
		}
		return nil
	}
	switch {
	case o.list.isKeyed:
		return s.eachMember(func(name string) error { return read(&name) })
	case !o.list.isSequence:
		return s.eachElement(func() error { return read(nil) })
	}
	return readSequence(s, func() error { return read(nil) })
}

// readSequence reads values one after the other. Commas between them are skipped.
func readSequence(s *jsonScanner, read func() error) error {
	for {
		switch b, err := s.peek(); {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		case b == ',':
			s.pos++
			continue
		}
		if err := read(); err != nil {
			return err
		}
	}
}
