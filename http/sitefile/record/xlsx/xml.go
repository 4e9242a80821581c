package xlsx

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"unicode/utf8"
)

// xmlScanner cuts the XML of a spreadsheet's part into tags and texts, of which it holds one at a time. It resolves the entities that
// XML itself defines and no others, and refuses a DOCTYPE, which could define more. Names are compared without the prefixes of namespaces:
// programs choose these freely, and no name that is searched is in two of them. The order in which tags end
// is not checked.
//
// encoding/xml does not serve: it allocates each name and value, and a sheet has millions.
type xmlScanner struct {
	in      io.Reader
	buf     []byte
	pos     int
	readErr error
	isEmpty bool // the last tag was <name/>: its end comes next
	token   xmlToken
}

// xmlToken is a tag or a text. Its bytes are valid until the next one. Comments may split a text into several tokens.
type xmlToken struct {
	kind       xmlKind
	name       []byte // of a tag, without the prefix of its namespace
	attributes []byte // of an opening tag
	text       []byte
}

// xmlKind is the kind of a token.
type xmlKind int

// The kinds. A tag such as <c/> is a start and then an end.
const (
	xmlStart xmlKind = iota
	xmlEnd
	xmlText
)

// maxTokenBytes is how long a tag or text may be. A cell of a spreadsheet has at most 32,767 characters.
const maxTokenBytes = 4 << 20

// errWrongXML begins the sentence of an error, if there is more to say.
var errWrongXML = errors.New("its XML is wrong")

// newXMLScanner scans a part from its beginning.
func newXMLScanner(in io.Reader) *xmlScanner { return &xmlScanner{in: in} }

// next returns the next tag or text, or io.EOF.
func (s *xmlScanner) next() (*xmlToken, error) {
	if s.isEmpty {
		s.isEmpty = false
		s.token.kind = xmlEnd
		return &s.token, nil
	}
	for {
		if err := s.need(1); err != nil {
			return nil, err
		}
		if s.buf[s.pos] != '<' {
			return s.readText()
		}
		if err := s.need(2); err != nil {
			return nil, errWrongXML
		}
		switch s.buf[s.pos+1] {
		case '/':
			return s.readEndTag()
		case '?':
			if _, err := s.readUntil("?>"); err != nil {
				return nil, err
			}
		case '!':
			if token, err := s.readDeclaration(); err != nil || token != nil {
				return token, err
			}
		default:
			return s.readStartTag()
		}
	}
}

// need reads until n bytes are available; io.EOF if there are fewer.
func (s *xmlScanner) need(n int) error {
	for len(s.buf)-s.pos < n {
		if s.readErr != nil {
			return s.readErr
		}
		if err := s.readMore(); err != nil {
			return err
		}
	}
	return nil
}

// readMore drops what is before pos and reads more.
func (s *xmlScanner) readMore() error {
	kept := s.buf[s.pos:]
	if len(kept) >= maxTokenBytes {
		return fmt.Errorf("%w: a text or tag has more than %d MiB", errWrongXML, maxTokenBytes>>20)
	}
	buf := s.buf[:cap(s.buf)]
	if len(kept) > len(buf)/2 || len(buf) == 0 {
		buf = make([]byte, max(64<<10, 4*len(kept)))
	}
	copy(buf, kept)
	n, err := io.ReadAtLeast(s.in, buf[len(kept):], 1)
	s.buf, s.pos = buf[:len(kept)+n], 0
	if n > 0 {
		return nil
	}
	s.readErr = err
	return err
}

// readUntil reads up to the end of a sign, and returns what is before it.
func (s *xmlScanner) readUntil(sign string) ([]byte, error) {
	for searched := 0; ; {
		rest := s.buf[s.pos:]
		if i := bytes.Index(rest[searched:], []byte(sign)); i >= 0 {
			s.pos += searched + i + len(sign)
			return rest[:searched+i], nil
		}
		searched = max(0, len(rest)-len(sign)+1)
		switch err := s.need(len(rest) + 1); {
		case err == io.EOF:
			return nil, errWrongXML
		case err != nil:
			return nil, err
		}
	}
}

// readText reads a text up to the next tag, or the end of the part.
func (s *xmlScanner) readText() (*xmlToken, error) {
	for searched := 0; ; {
		rest := s.buf[s.pos:]
		if i := bytes.IndexByte(rest[searched:], '<'); i >= 0 {
			s.pos += searched + i
			s.token = xmlToken{kind: xmlText, text: resolveEntities(rest[:searched+i])}
			return &s.token, nil
		}
		searched = len(rest)
		if err := s.need(len(rest) + 1); err == io.EOF {
			s.pos = len(s.buf)
			s.token = xmlToken{kind: xmlText, text: resolveEntities(rest)}
			return &s.token, nil
		} else if err != nil {
			return nil, err
		}
	}
}

// readEndTag reads </name>. It does not check that it ends the open tag: programs wrote it, not people.
func (s *xmlScanner) readEndTag() (*xmlToken, error) {
	tag, err := s.readUntil(">")
	if err != nil {
		return nil, err
	}
	s.token = xmlToken{kind: xmlEnd, name: localName(bytes.TrimSpace(tag[2:]))}
	return &s.token, nil
}

// readStartTag reads <name a="…">. An attribute may hold the sign >.
func (s *xmlScanner) readStartTag() (*xmlToken, error) {
	tag, err := s.readTag()
	if err != nil {
		return nil, err
	}
	if len(tag) > 0 && tag[len(tag)-1] == '/' {
		tag, s.isEmpty = tag[:len(tag)-1], true
	}
	end := bytes.IndexAny(tag, " \t\r\n")
	if end < 0 {
		end = len(tag)
	}
	s.token = xmlToken{kind: xmlStart, name: localName(tag[:end]), attributes: tag[end:]}
	return &s.token, nil
}

// readTag reads up to the first > outside quotes, and returns what is inside.
func (s *xmlScanner) readTag() ([]byte, error) {
	quote, i := byte(0), 1
	for {
		rest := s.buf[s.pos:]
		for ; i < len(rest); i++ {
			switch b := rest[i]; {
			case quote != 0:
				if b == quote {
					quote = 0
				}
			case b == '"' || b == '\'':
				quote = b
			case b == '>':
				s.pos += i + 1
				return rest[1:i], nil
			}
		}
		switch err := s.need(i + 1); {
		case err == io.EOF:
			return nil, errWrongXML
		case err != nil:
			return nil, err
		}
	}
}

// readDeclaration skips a comment, returning nil, or reads the text of a CDATA section.
func (s *xmlScanner) readDeclaration() (*xmlToken, error) {
	const cdata = "<![CDATA["
	if err := s.need(4); err != nil {
		return nil, errWrongXML
	}
	if bytes.HasPrefix(s.buf[s.pos:], []byte("<!--")) {
		_, err := s.readUntil("-->")
		return nil, err
	}
	if s.need(len(cdata)) != nil || !bytes.HasPrefix(s.buf[s.pos:], []byte(cdata)) {
		return nil, fmt.Errorf("%w: it has a DOCTYPE", errWrongXML)
	}
	text, err := s.readUntil("]]>")
	if err != nil {
		return nil, err
	}
	s.token = xmlToken{kind: xmlText, text: text[len(cdata):]}
	return &s.token, nil
}

// localName is a name without the prefix of its namespace.
func localName(name []byte) []byte { return name[bytes.IndexByte(name, ':')+1:] }

// attribute is the value of an attribute of a tag, by its name without a prefix; nil if the tag does not have it.
func (t *xmlToken) attribute(name string) []byte {
	rest := t.attributes
	for {
		equals := bytes.IndexByte(rest, '=')
		if equals < 0 {
			return nil
		}
		found := localName(bytes.TrimSpace(rest[:equals]))
		rest = bytes.TrimLeft(rest[equals+1:], " \t\r\n")
		if len(rest) == 0 {
			return nil
		}
		end := bytes.IndexByte(rest[1:], rest[0])
		if end < 0 {
			return nil
		}
		if string(found) == name {
			return resolveEntities(rest[1 : end+1])
		}
		rest = rest[end+2:]
	}
}

// resolveEntities is a text with the characters that entities stand for. An entity that XML does not have stays.
func resolveEntities(text []byte) []byte {
	if bytes.IndexByte(text, '&') < 0 {
		return text
	}
	out := make([]byte, 0, len(text))
	for {
		start := bytes.IndexByte(text, '&')
		if start < 0 {
			return append(out, text...)
		}
		out, text = append(out, text[:start]...), text[start:]
		end := bytes.IndexByte(text[:min(len(text), 12)], ';')
		r, ok := resolveEntity(text[1:max(end, 1)])
		if !ok {
			out, text = append(out, '&'), text[1:]
			continue
		}
		out, text = utf8.AppendRune(out, r), text[end+1:]
	}
}

// resolveEntity is the character that the name of an entity stands for.
func resolveEntity(name []byte) (rune, bool) {
	switch string(name) {
	case "lt":
		return '<', true
	case "gt":
		return '>', true
	case "amp":
		return '&', true
	case "quot":
		return '"', true
	case "apos":
		return '\'', true
	}
	if len(name) < 2 || name[0] != '#' {
		return 0, false
	}
	digits, base := string(name[1:]), 10
	if digits[0] == 'x' {
		digits, base = digits[1:], 16
	}
	n, err := strconv.ParseUint(digits, base, 21)
	return rune(n), err == nil
}
