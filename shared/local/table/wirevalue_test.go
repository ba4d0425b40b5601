package table_test

import (
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// wireValue is an attribute value as the wire has it; one member is set.
type wireValue struct {
	S    *string                         `json:",omitzero"`
	N    *string                         `json:",omitzero"`
	B    *[]byte                         `json:",omitzero"`
	BOOL *bool                           `json:",omitzero"`
	NULL *bool                           `json:",omitzero"`
	SS   []string                        `json:",omitzero"`
	NS   []string                        `json:",omitzero"`
	BS   [][]byte                        `json:",omitzero"`
	L    []types.AttributeValue          `json:",omitzero"`
	M    map[string]types.AttributeValue `json:",omitzero"`
}

// readValue reads a wire value into the SDK's type.
func readValue(dec *jsontext.Decoder, to *types.AttributeValue) error {
	var w wireValue
	if err := json.UnmarshalDecode(dec, &w); err != nil {
		return err
	}
	switch {
	case w.S != nil:
		*to = &types.AttributeValueMemberS{Value: *w.S}
	case w.N != nil:
		*to = &types.AttributeValueMemberN{Value: *w.N}
	case w.B != nil:
		*to = &types.AttributeValueMemberB{Value: *w.B}
	case w.BOOL != nil:
		*to = &types.AttributeValueMemberBOOL{Value: *w.BOOL}
	case w.NULL != nil:
		*to = &types.AttributeValueMemberNULL{Value: *w.NULL}
	case w.SS != nil:
		*to = &types.AttributeValueMemberSS{Value: w.SS}
	case w.NS != nil:
		*to = &types.AttributeValueMemberNS{Value: w.NS}
	case w.BS != nil:
		*to = &types.AttributeValueMemberBS{Value: w.BS}
	case w.L != nil:
		*to = &types.AttributeValueMemberL{Value: w.L}
	case w.M != nil:
		*to = &types.AttributeValueMemberM{Value: w.M}
	default:
		return fmt.Errorf("an attribute value without a type")
	}
	return nil
}

// writeValue is readValue's inverse.
func writeValue(enc *jsontext.Encoder, v types.AttributeValue) error {
	var w wireValue
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		w.S = &v.Value
	case *types.AttributeValueMemberN:
		w.N = &v.Value
	case *types.AttributeValueMemberB:
		w.B = &v.Value
	case *types.AttributeValueMemberBOOL:
		w.BOOL = &v.Value
	case *types.AttributeValueMemberNULL:
		w.NULL = &v.Value
	case *types.AttributeValueMemberSS:
		w.SS = v.Value
	case *types.AttributeValueMemberNS:
		w.NS = v.Value
	case *types.AttributeValueMemberBS:
		w.BS = v.Value
	case *types.AttributeValueMemberL:
		w.L = v.Value
	case *types.AttributeValueMemberM:
		w.M = v.Value
	default:
		return fmt.Errorf("%T is not an attribute value", v)
	}
	return json.MarshalEncode(enc, w)
}
