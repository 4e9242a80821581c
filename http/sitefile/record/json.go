package record

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
)

// openJSON finds the objects of a JSON text that are records: those of a list, those of an object of objects, or those that follow
// each other. It reads the text once to its end, so a file that breaks off is refused before its first record.
func openJSON(t *text, name string) (*File, error) {
	f := &File{}
	t.fill(&f.info)
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
	switch strings.ToLower(path.Ext(name)) {
	case ".ndjson", ".jsonl", ".geojsonl", ".geojsons", ".geojsonseq":
		info.Format = NDJSON
		return sequence, nil
	}
	s := newJSONScanner(t.open())
	finder := listFinder{scanner: s, info: info}
	names, err := finder.walkValue(nil)
	if err != nil {
		return objectList{}, err
	}
	info.Format = JSON
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

// objectList is where the records of a JSON text are.
type objectList struct {
	path       []string // the members that lead to it
	offset     int64    // of its opening bracket, in the decoded text
	line       int
	objects    int
	isKeyed    bool // an object of objects
	isSequence bool // objects one after the other, in no list
}

func (l objectList) name() string { return strings.Join(l.path, ".") }

// listFinder walks through a JSON text and notes the lists of objects in it.
type listFinder struct {
	scanner    *jsonScanner
	info       *Info
	lists      []objectList // the longest first, at most maxLists
	rootType   string       // the text of the outermost member type
	isRootList bool
}

const (
	maxLists      = 10
	maxDepth      = 8  // below it objects stay whole
	maxAlikeNames = 50 // of an object that is compared with others
)

// choose is the list that is read: the features of a FeatureCollection, else the longest one. An object without any is a record.
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

// add notes a list among the longest.
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

// walkValue walks through a value and notes its lists. Of an object it returns the first names.
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

// walkList counts the objects of a list, and notes it where it has no other values but null.
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
	}
	return err
}

// walkObject walks through the members of an object. It notes the object itself as a list where all its members are objects alike.
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
		if len(path) == 0 && (name == "crs" || name == "spatialReference") {
			isAlike = false
			return f.readCRS()
		}
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
	}
	return names, err
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
	case err != nil: // not of these forms: it says nothing
	case crs.Properties.Name != "":
		f.info.CRS = crs.Properties.Name
	case crs.Properties.Code != nil:
		f.info.CRS = fmt.Sprintf("EPSG:%v", crs.Properties.Code)
	case crs.LatestWKID != 0 || crs.WKID != 0:
		f.info.CRS = fmt.Sprintf("EPSG:%d", max(crs.LatestWKID, crs.WKID*min(1, 1-crs.LatestWKID)))
	}
	return nil
}

// jsonScanner cuts values out of a JSON text, of which it holds one value at most. It finds where a value ends by quotes and brackets
// alone; flattener checks the rest of those that are records. encoding/json holds a value as long as the file, accepts no NaN, which
// Python writes, and counts no lines.
type jsonScanner struct {
	in    io.Reader
	buf   []byte
	pos   int
	start int   // bytes from here on are kept; -1: from pos on
	base  int64 // the offset of buf[0] in the text
	line  int   // of pos
	atEnd bool
}

func newJSONScanner(in io.Reader) *jsonScanner { return &jsonScanner{in: in, line: 1, start: -1} }

func (s *jsonScanner) offset() int64 { return s.base + int64(s.pos) }

// fill reads on. It drops what is before pos, or before the value that is kept. io.EOF: the text has ended.
func (s *jsonScanner) fill() error {
	if s.atEnd {
		return io.EOF
	}
	from := s.pos
	if s.start >= 0 {
		from = s.start
		s.start = 0
	}
	kept := s.buf[from:]
	if len(kept) >= maxRecordBytes {
		return &LineError{s.line, fmt.Sprintf("an object has more than %d MiB: check whether one before this line is closed", maxRecordBytes>>20)}
	}
	buf := s.buf[:cap(s.buf)]
	if len(kept) > len(buf)/2 || len(buf) == 0 {
		buf = make([]byte, max(64<<10, 4*len(kept)))
	}
	copy(buf, kept)
	n, err := io.ReadFull(s.in, buf[len(kept):])
	s.base, s.pos, s.buf = s.base+int64(from), s.pos-from, buf[:len(kept)+n]
	s.atEnd = err == io.EOF || err == io.ErrUnexpectedEOF
	switch {
	case s.atEnd && n == 0:
		return io.EOF
	case s.atEnd:
		return nil
	}
	return err
}

// peek is the first byte of the next value or sign; spaces before it are skipped, and the signs that part the texts of a sequence.
func (s *jsonScanner) peek() (byte, error) {
	for {
		for ; s.pos < len(s.buf); s.pos++ {
			switch b := s.buf[s.pos]; b {
			case '\n':
				s.line++
			case ' ', '\t', '\r', 0x1e:
			default:
				return b, nil
			}
		}
		if err := s.fill(); err != nil {
			return 0, err
		}
	}
}

func (s *jsonScanner) endError() error {
	return &LineError{s.line, "the JSON breaks off here: get the whole file"}
}

// expect skips one sign.
func (s *jsonScanner) expect(sign byte) error {
	switch b, err := s.peek(); {
	case err == io.EOF:
		return s.endError()
	case err != nil:
		return err
	case b != sign:
		return &LineError{s.line, fmt.Sprintf("the JSON is wrong here: %q stands where %q is due", b, sign)}
	}
	s.pos++
	return nil
}

// eachElement calls read for each element of a list; read must read it.
func (s *jsonScanner) eachElement(read func() error) error { return s.eachPart('[', ']', read) }

// eachMember calls read for each member of an object, whose name was read; read must read its value.
func (s *jsonScanner) eachMember(read func(name string) error) error {
	return s.eachPart('{', '}', func() error {
		name, err := s.readText()
		if err == nil {
			err = s.expect(':')
		}
		if err != nil {
			return err
		}
		return read(name)
	})
}

// eachPart calls read for each of the parts between brackets, which commas separate.
func (s *jsonScanner) eachPart(opening, closing byte, read func() error) error {
	if err := s.expect(opening); err != nil {
		return err
	}
	for n := 0; ; n++ {
		b, err := s.peek()
		switch {
		case err == io.EOF:
			return s.endError()
		case err != nil:
			return err
		case b == closing:
			s.pos++
			return nil
		case n > 0:
			if err := s.expect(','); err != nil {
				return err
			}
		}
		if err := read(); err != nil {
			return endAsError(err, s)
		}
	}
}

// endAsError is err, or the error of a text that breaks off.
func endAsError(err error, s *jsonScanner) error {
	if err == io.EOF {
		return s.endError()
	}
	return err
}

// readText reads a string.
func (s *jsonScanner) readText() (string, error) {
	if b, err := s.peek(); err != nil || b != '"' {
		return "", s.expectationError(err)
	}
	raw, err := s.readRaw()
	if err != nil {
		return "", err
	}
	line := s.line
	p := objectParser{text: string(raw)}
	text, err := p.parseString()
	if err != nil {
		return "", &LineError{line, err.Error()}
	}
	return text, nil
}

func (s *jsonScanner) expectationError(err error) error {
	if err != nil {
		return endAsError(err, s)
	}
	return &LineError{s.line, "the JSON is wrong here: a name in quotes is due"}
}

// readRaw reads a value. Its bytes are valid until the next call.
func (s *jsonScanner) readRaw() ([]byte, error) {
	if _, err := s.peek(); err != nil {
		return nil, endAsError(err, s)
	}
	s.start = s.pos
	err := s.passValue()
	raw := s.buf[s.start:s.pos]
	s.start = -1
	return raw, err
}

// skip skips a value, of any length.
func (s *jsonScanner) skip() error {
	if _, err := s.peek(); err != nil {
		return endAsError(err, s)
	}
	return s.passValue()
}

// passValue moves pos behind a value that begins at pos. The error of a value that breaks off names the line on which it begins.
func (s *jsonScanner) passValue() error {
	var err error
	line := s.line
	switch s.buf[s.pos] {
	case '{', '[', '"':
		err = s.passBrackets()
	default:
		err = s.passLiteral()
	}
	if err == io.EOF {
		return &LineError{line, "the JSON breaks off in what begins here: get the whole file, or close its brackets and quotes"}
	}
	return err
}

// passBrackets moves pos behind the end of a string, list or object.
func (s *jsonScanner) passBrackets() error {
	depth, inString, isEscaped := 0, false, false
	for {
		for s.pos < len(s.buf) {
			b := s.buf[s.pos]
			s.pos++
			switch {
			case isEscaped:
				isEscaped = false
			case b == '\n' && inString:
				return &LineError{s.line, "a text in quotes is not closed before the end of the line"}
			case b == '\n':
				s.line++
			case b == '"':
				inString = !inString
			case inString:
				isEscaped = b == '\\'
			case b == '{' || b == '[':
				depth++
			case b == '}' || b == ']':
				depth--
			}
			if depth == 0 && !inString {
				return nil
			}
		}
		if err := s.fill(); err != nil {
			return err
		}
	}
}

// passLiteral moves pos behind a number, true, false or null, which the end of the text may end too.
func (s *jsonScanner) passLiteral() error {
	for n := 0; ; n++ {
		if s.pos == len(s.buf) {
			if err := s.fill(); err == io.EOF && n > 0 {
				return nil
			} else if err != nil {
				return err
			}
		}
		if bytes.IndexByte([]byte(",]}{[:\" \t\r\n\x1e"), s.buf[s.pos]) >= 0 {
			if n == 0 {
				return &LineError{s.line, fmt.Sprintf("the JSON is wrong here: %q stands where a value is due", s.buf[s.pos])}
			}
			return nil
		}
		s.pos++
	}
}
