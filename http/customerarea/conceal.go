package customerarea

import (
	"io"
	"strings"

	"lieudit/schemas/token"
)

// redactedBody is a body in which tokens are hints. No request needs one in its body; but people paste the key they
// talk about into a label or a reason, and the log keeps these for good.
type redactedBody struct {
	io.ReadCloser
	prefixes token.Prefixes
	text     io.Reader // nil before the first read
}

func (c *redactedBody) Read(p []byte) (int, error) {
	if c.text == nil {
		whole, err := io.ReadAll(c.ReadCloser)
		if err != nil {
			return 0, err
		}
		c.text = strings.NewReader(c.prefixes.RedactValidTokens(string(whole)))
	}
	return c.text.Read(p)
}
