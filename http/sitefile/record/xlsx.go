package record

import "io"

// openXLSX refuses spreadsheets for now.
func openXLSX(io.ReaderAt, int64, Options) (*File, error) {
	return nil, &FormatError{"spreadsheets are not read yet: save it as CSV"}
}
