package xlsx

import (
	"errors"
	"strings"
	"testing"
)

func TestASheetOfTooManyEmptyCellsIsRefused(t *testing.T) {
	t.Parallel()
	r := sheetReader{workbook: &Workbook{}, width: MaxColumns, cells: maxCells - 1}
	s := newXMLScanner(strings.NewReader("<c/><c/>"))
	for _, isRefused := range []bool{false, true} {
		token, err := s.next()
		if err != nil {
			t.Fatal(err)
		}
		err = r.readToken(s, token)
		if bad := new(FormatError); errors.As(err, &bad) != isRefused {
			t.Errorf("cell %d of at most %d: %v", r.cells, maxCells, err)
		}
	}
}
