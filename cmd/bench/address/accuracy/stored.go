package accuracy

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"lieudit/schemas/geo"
	"os"
	"slices"
	"strconv"
	"strings"
)

// questionColumns is the header of a file of questions.
const questionColumns = "set;kind;q;lat;lon;id;label"

// completionSet is the set whose questions are the beginnings of addresses, for autocomplete.
const completionSet = "completion"

// Question is a stored question and its expected answer.
type Question struct {
	Set, Kind, Text string
	ID, Label       string // of the expected record; empty: no answer is right
}

// ReadQuestions reads the questions of all files in order, without those for autocomplete.
func ReadQuestions(names []string) (all []Question, err error) {
	questions, err := readQuestionFiles(names)
	for _, q := range questions {
		if !q.completes {
			all = append(all, Question{Set: q.set, Kind: q.kind, Text: q.text, ID: q.id, Label: q.label})
		}
	}
	return all, err
}

// readQuestionFiles reads the questions of all files in order.
func readQuestionFiles(names []string) (all []question, err error) {
	for _, name := range names {
		file, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		questions, err := readQuestions(file)
		if err := errors.Join(err, file.Close()); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		all = append(all, questions...)
	}
	return all, nil
}

// readQuestions reads a file of questions with the columns of questionColumns, separated by semicolons. lat and lon may both be empty; an empty
// id means that no result is right. The questions have no judge yet.
func readQuestions(r io.Reader) (all []question, err error) {
	records := csv.NewReader(r)
	records.Comma = ';'
	head, err := records.Read() // every other line must have the same number of columns
	if err != nil {
		return nil, err
	}
	if got := strings.Join(head, ";"); got != questionColumns {
		return nil, fmt.Errorf("the columns are %q, want %q", got, questionColumns)
	}
	for {
		fields, err := records.Read()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		bias, err := parseBias(fields[3], fields[4])
		if err != nil {
			line, _ := records.FieldPos(3)
			return nil, fmt.Errorf("line %d: %w", line, err)
		}
		all = append(all, question{set: fields[0], kind: fields[1], text: fields[2], bias: bias, id: fields[5], label: fields[6], completes: fields[0] == completionSet})
	}
}

// parseBias parses a position in degrees, nil if it is empty.
func parseBias(lat, lon string) (*geo.Point, error) {
	if lat == "" && lon == "" {
		return nil, nil
	}
	y, errLat := strconv.ParseFloat(lat, 64)
	x, errLon := strconv.ParseFloat(lon, 64)
	if err := errors.Join(errLat, errLon); err != nil {
		return nil, err
	}
	return &geo.Point{Lon: x, Lat: y}, nil
}

// groupQuestions groups questions by set and kind, in the order in which each pair first appears.
func groupQuestions(questions []question) (groups []group) {
	for _, q := range questions {
		i := slices.IndexFunc(groups, func(g group) bool { return g.set == q.set && g.kind == q.kind })
		if i < 0 {
			i = len(groups)
			groups = append(groups, group{set: q.set, kind: q.kind})
		}
		groups[i].questions = append(groups[i].questions, q)
	}
	return groups
}
