#pragma once
// The contents of a SentencePiece tokenizer.model: a protocol buffer, read and checked here without SentencePiece's own library.
#include <string>
#include <string_view>
#include <vector>

namespace kedge {

struct SentencePieceModel {
  enum class PieceType { normal = 1, unknown = 2, control = 3, user_defined = 4, unused = 5, byte = 6 };
  enum class Algorithm { unigram = 1, bpe = 2 };
  struct Piece {
    std::string text;
    float score = 0;
    PieceType type = PieceType::normal;
  };

  std::vector<Piece> pieces;  // by id
  size_t unk_id = 0;
  Algorithm algorithm = Algorithm::unigram;
  bool byte_fallback = false;  // an unknown character becomes its bytes; there are 256 byte pieces
  std::string unk_piece = "<unk>", bos_piece = "<s>", eos_piece = "</s>", pad_piece = "<pad>";
  std::string unk_surface = " \xE2\x81\x87 ";  // what an unknown piece decodes to

  std::string charsmap;                  // replacements made in text first (charsmap.h); often none
  bool add_dummy_prefix = true;          // a space before the text
  bool remove_extra_whitespaces = true;  // runs of spaces become one, those at either end none
  bool escape_whitespaces = true;        // spaces are written as U+2581
  bool whitespace_as_suffix = false;     // the dummy space goes after the text

  // A broken model, or one with unsupported features, is a UsageError that opens with `origin`.
  static SentencePieceModel parse(std::string_view bytes, const std::string& origin);

 private:
  void check_pieces(const std::string& origin);
};

}  // namespace kedge
