package ban

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
)

// maxJoinedLines is the number of lines that one quoted field may span.
const maxJoinedLines = 8

// errQuoting says that the end of the current record cannot be found.
var errQuoting = errors.New("broken quotes")

// recordReader splits text into records and records into fields. encoding/csv does not serve here: after a broken quote
// it loses the rest of the file, while a base of 26 million rows must lose one row. Fields are valid until the next
// record.
type recordReader struct {
	text      *bufio.Reader
	line      int // last line of the current record
	linesRead int // lines read from the text
	queue     [][]byte
	fields    [][]byte
}

// readLine returns the next line without its end. Lines in the queue come first.
func (s *recordReader) readLine() ([]byte, error) {
	if len(s.queue) > 0 {
		line := s.queue[0]
		s.queue = s.queue[1:]
		return line, nil
	}
	line, err := s.text.ReadSlice('\n')
	if len(line) > 0 {
		s.linesRead++
	}
	switch {
	case errors.Is(err, bufio.ErrBufferFull):
		return nil, s.skipLongLine()
	case errors.Is(err, io.EOF) && len(line) > 0:
		err = nil
	case err != nil:
		return nil, err
	}
	line = bytes.TrimSuffix(line, []byte("\n"))
	return bytes.TrimSuffix(line, []byte("\r")), err
}

// skipLongLine skips the rest of a line that is too long.
func (s *recordReader) skipLongLine() error {
	for {
		_, err := s.text.ReadSlice('\n')
		if !errors.Is(err, bufio.ErrBufferFull) {
			if err == nil || errors.Is(err, io.EOF) {
				return errQuoting
			}
			return err
		}
	}
}

// readRecord reads the next record into fields and skips blank lines.
func (s *recordReader) readRecord() error {
	for {
		line, err := s.readLine()
		s.line = s.linesRead - len(s.queue)
		if err != nil {
			return err
		}
		if len(line) == 0 {
			continue
		}
		if bytes.IndexByte(line, '"') < 0 {
			s.splitPlain(line)
			return nil
		}
		return s.splitQuoted(line)
	}
}

// splitPlain splits a line without quotes.
func (s *recordReader) splitPlain(line []byte) {
	s.fields = s.fields[:0]
	for {
		i := bytes.IndexByte(line, ';')
		if i < 0 {
			s.fields = append(s.fields, line)
			return
		}
		s.fields = append(s.fields, line[:i])
		line = line[i+1:]
	}
}

// splitQuoted splits a line with quotes and joins the next lines while a quote is open. When the quote never closes,
// the joined lines are queued to be read again, each as its own record.
func (s *recordReader) splitQuoted(first []byte) error {
	record := bytes.Clone(first)
	var more [][]byte
	for !s.splitClosed(record) {
		line, err := s.readLine()
		if len(more) == maxJoinedLines || errors.Is(err, io.EOF) || errors.Is(err, errQuoting) {
			if line != nil {
				more = append(more, bytes.Clone(line))
			}
			s.queue = append(more, s.queue...)
			return errQuoting
		}
		if err != nil {
			return err
		}
		more = append(more, bytes.Clone(line))
		record = append(append(record, '\n'), line...)
	}
	return nil
}

// splitClosed splits a record and reports whether all its quotes are closed. A quote inside an unquoted field is a
// letter.
func (s *recordReader) splitClosed(record []byte) bool {
	s.fields = s.fields[:0]
	for {
		field, rest, more, ok := cutField(record)
		if !ok {
			return false
		}
		s.fields = append(s.fields, field)
		if !more {
			return true
		}
		record = rest
	}
}

// cutField cuts the first field off a record; more says that another field follows.
func cutField(record []byte) (field, rest []byte, more, ok bool) {
	if len(record) == 0 || record[0] != '"' {
		field, rest, more = bytes.Cut(record, []byte(";"))
		return field, rest, more, true
	}
	for i := 1; i < len(record); i++ {
		if record[i] != '"' {
			field = append(field, record[i])
			continue
		}
		switch {
		case i+1 == len(record):
			return field, nil, false, true
		case record[i+1] == ';':
			return field, record[i+2:], true, true
		case record[i+1] == '"':
			i++
		}
		field = append(field, '"')
	}
	return nil, nil, false, false
}

// field is a column that the reader knows.
type field int

const (
	fieldID field = iota
	fieldNumero
	fieldRep
	fieldVoie
	fieldPlace // nom_lieu_dit, of the files of localities
	fieldCodePostal
	fieldCodeInsee
	fieldCommune
	fieldCodeInseeAncienne
	fieldCommuneAncienne
	fieldX
	fieldY
	fieldLon
	fieldLat
	fieldTypePosition
	fieldAlias
	fieldLieuDit
	fieldAcheminement
	fieldNomAFNOR
	fieldCertifie
	fieldParcelles
	fieldIDBan
	fieldSource
	fieldCount
)

// columnNames are the official names of each field's column. The first one that a file has counts.
var columnNames = [fieldCount][]string{
	fieldID:                {"id"},
	fieldNumero:            {"numero"},
	fieldRep:               {"rep"},
	fieldVoie:              {"nom_voie"},
	fieldPlace:             {"nom_lieu_dit"},
	fieldCodePostal:        {"code_postal"},
	fieldCodeInsee:         {"code_insee"},
	fieldCommune:           {"nom_commune"},
	fieldCodeInseeAncienne: {"code_insee_ancienne_commune"},
	fieldCommuneAncienne:   {"nom_ancienne_commune"},
	fieldX:                 {"x"},
	fieldY:                 {"y"},
	fieldLon:               {"lon"},
	fieldLat:               {"lat"},
	fieldTypePosition:      {"type_position"},
	fieldAlias:             {"alias"},
	fieldLieuDit:           {"nom_ld"},
	fieldAcheminement:      {"libelle_acheminement"},
	fieldNomAFNOR:          {"nom_afnor"},
	fieldCertifie:          {"certification_commune"},
	fieldParcelles:         {"cad_parcelles"},
	fieldIDBan:             {"id_ban_adresse", "id_ban", "uid_adresse"},
	fieldSource:            {"source_nom_voie"},
}

// columns is the index of each field's column in one file, -1 without a column.
type columns struct {
	index         [fieldCount]int
	width         int
	hasLocalities bool
}

// readHeader finds the columns of a file by its first line.
func readHeader(file string, line []byte) (columns, error) {
	c := columns{}
	titles := strings.Split(strings.ToLower(string(line)), ";")
	c.width = len(titles)
	for f := range c.index {
		c.index[f] = findColumn(titles, columnNames[f])
	}
	c.hasLocalities = c.index[fieldPlace] >= 0 && c.index[fieldNumero] < 0
	if missing := c.missingColumns(); len(missing) > 0 {
		looks := fmt.Sprintf("it has no column %s; %s", strings.Join(missing, ", "), quoteHeader(line))
		if bytes.Count(line, []byte(",")) > 3 && len(titles) < 3 {
			looks = "its columns are separated by commas, the base's by semicolons; " + quoteHeader(line)
		}
		return c, &FormatError{File: file, Looks: looks}
	}
	return c, nil
}

// findColumn is the index of the first wanted title among the titles of a file, -1 without one.
func findColumn(titles, wanted []string) int {
	for _, name := range wanted {
		for i, t := range titles {
			if strings.Trim(t, "\" \t\r") == name {
				return i
			}
		}
	}
	return -1
}

// missingColumns names the required columns that a file does not have.
func (c *columns) missingColumns() (absent []string) {
	needed := []field{fieldID, fieldNumero, fieldVoie, fieldCodeInsee, fieldCommune, fieldLon, fieldLat}
	if c.hasLocalities {
		needed = []field{fieldID, fieldPlace, fieldCodeInsee, fieldCommune, fieldLon, fieldLat}
	}
	for _, f := range needed {
		if c.index[f] < 0 {
			absent = append(absent, columnNames[f][0])
		}
	}
	return absent
}
