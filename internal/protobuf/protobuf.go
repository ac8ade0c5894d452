// Package protobuf appends fields of protocol buffers' messages to bytes.
package protobuf

import "encoding/binary"

// Varint is an integer, an enumeration or a truth value. Negative numbers are uint64(int64(x)).
func Varint(b []byte, field int, x uint64) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(b, uint64(field)<<3), x)
}

// Fixed64 is a number of eight bytes, such as math.Float64bits of a double.
func Fixed64(b []byte, field int, x uint64) []byte {
	return binary.LittleEndian.AppendUint64(binary.AppendUvarint(b, uint64(field)<<3|1), x)
}

// Fixed32 is a number of four bytes, such as math.Float32bits of a float.
func Fixed32(b []byte, field int, x uint32) []byte {
	return binary.LittleEndian.AppendUint32(binary.AppendUvarint(b, uint64(field)<<3|5), x)
}

// Bytes is bytes, a string or a message.
func Bytes[T string | []byte](b []byte, field int, content T) []byte {
	return append(Head(b, field, len(content)), content...)
}

// Head is Bytes without the content of n bytes, which must follow.
func Head(b []byte, field, size int) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(b, uint64(field)<<3|2), uint64(size))
}
