// Windows: runs of keys of a segment with their neighbours.
//
// All offsets are bytes from the start of the window and multiples of 8. Twelve readable bytes follow each
// packed array. The host side of this format is src/window.rs.
#pragma once
#include "dialect.cuh"

enum KeySet { KEYS_RANGE = 0, KEYS_BITMAP = 1, KEYS_SORTED = 2 };

struct WindowHeader {
  u64 first_key;
  u64 keys;
  u64 key_set;             // a KeySet
  u64 key_parameter;       // bitmap: blocks of 64 numbers; sorted: bytes of a key
  u64 keys_at;
  u64 offsets_at;          // u32 for each key and one more; 0: each key has one entry
  u64 neighbours_at;
  u64 neighbour_width;     // bytes
  u64 neighbour_minimum;
};

// The windows of a segment that a launch may read, ascending.
struct Windows {
  const u64* last_keys;
  const u64* addresses;
  u64 count;
};

// A value for each row: a constant, a column, or the candidate itself.
enum OperandKind { OPERAND_CONSTANT = 0, OPERAND_COLUMN = 1, OPERAND_CANDIDATE = 2 };
struct Operand {
  u64 kind;
  u64 constant;
  const u64* column;
};

VERVET_DEVICE u64 value_of(const Operand& operand, u64 row, u64 candidate) {
  if (operand.kind == OPERAND_COLUMN) return operand.column[row];
  return operand.kind == OPERAND_CANDIDATE ? candidate : operand.constant;
}

// Element `index` of a packed array: `width` bytes each (0 to 8), little endian, less `minimum`.
VERVET_DEVICE u64 packed_value(const u32* words, u64 width, u64 minimum, u64 index) {
  if (width == 0) return minimum;
  u64 at = index * width;
  const u32* from = words + (at >> 2);
  u32 shift = ((u32)at & 3) * 8;
  u32 end = shift + 8 * (u32)width;
  u64 value = from[0];
  if (end > 32) value |= (u64)from[1] << 32;
  value >>= shift;
  if (end > 64) value |= (u64)from[2] << (64 - shift);
  u64 mask = width == 8 ? ~0ull : (1ull << (8 * width)) - 1;
  return minimum + (value & mask);
}

VERVET_DEVICE const WindowHeader& header_of(const u8* window) { return *(const WindowHeader*)window; }

VERVET_DEVICE u64 neighbour_at(const u8* window, u64 index) {
  const WindowHeader& h = header_of(window);
  return packed_value((const u32*)(window + h.neighbours_at), h.neighbour_width, h.neighbour_minimum, index);
}

#define NO_POSITION 0xffffffffffffffffull

// The position of a key among those of its window.
VERVET_DEVICE u64 position_of(const u8* window, u64 key) {
  const WindowHeader& h = header_of(window);
  u64 distance = key - h.first_key;
  if (h.key_set == KEYS_RANGE) return distance < h.keys ? distance : NO_POSITION;
  if (h.key_set == KEYS_BITMAP) {
    u64 block = distance >> 6, bit = distance & 63;
    if (block >= h.key_parameter) return NO_POSITION;
    const u64* words = (const u64*)(window + h.keys_at) + 2 * block;
    u64 bits = words[0];
    return bits >> bit & 1 ? words[1] + count_bits(bits & ((1ull << bit) - 1)) : NO_POSITION;
  }
  const u32* keys = (const u32*)(window + h.keys_at);
  u64 low = 0, high = h.keys;
  while (low < high) {
    u64 middle = (low + high) / 2;
    if (packed_value(keys, h.key_parameter, h.first_key, middle) < key) low = middle + 1;
    else high = middle;
  }
  bool found = low < h.keys && packed_value(keys, h.key_parameter, h.first_key, low) == key;
  return found ? low : NO_POSITION;
}

// The entries of a key: a window and a range of its neighbours.
struct Entries {
  u32 window;
  u32 begin;
  u32 end;
};

VERVET_DEVICE const u8* window_at(const Windows& windows, u64 index) {
  return (const u8*)windows.addresses[index];
}

VERVET_DEVICE Entries entries_of(const Windows& windows, u64 key) {
  u64 low = 0, high = windows.count;
  while (low < high) {
    u64 middle = (low + high) / 2;
    if (windows.last_keys[middle] < key) low = middle + 1;
    else high = middle;
  }
  Entries none = {0, 0, 0};
  if (low == windows.count) return none;
  const u8* window = window_at(windows, low);
  u64 position = position_of(window, key);
  if (position == NO_POSITION) return none;
  u64 offsets_at = header_of(window).offsets_at;
  if (offsets_at == 0) return Entries{(u32)low, (u32)position, (u32)position + 1};
  const u32* offsets = (const u32*)(window + offsets_at);
  return Entries{(u32)low, offsets[position], offsets[position + 1]};
}

// Whether the entry `key -> wanted` exists.
VERVET_DEVICE bool is_member(const Windows& windows, u64 key, u64 wanted) {
  Entries entries = entries_of(windows, key);
  if (entries.begin == entries.end) return false;
  const u8* window = window_at(windows, entries.window);
  u32 low = entries.begin, high = entries.end;
  while (low < high) {
    u32 middle = low + (high - low) / 2;
    if (neighbour_at(window, middle) < wanted) low = middle + 1;
    else high = middle;
  }
  return low < entries.end && neighbour_at(window, low) == wanted;
}
